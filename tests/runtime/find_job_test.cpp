#include "runtime/find_job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "support/ranks.h"

namespace iridium {
namespace {

using test::expect_error;
using Variables = std::map<std::string, std::string>;

/// As `process_environment` does it: empty is absent.
Environment environment_of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

Job job_of(const Variables& variables) {
  return find_job(environment_of(variables));
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

const Variables iridium_run = {{"IRIDIUM_RANK", "2"},
                               {"IRIDIUM_SIZE", "4"},
                               {"IRIDIUM_JOB", "job name"},
                               {"IRIDIUM_TOKEN", "secret"}};
const Variables torchrun = {{"TORCHELASTIC_RUN_ID", "run"},
                            {"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_PORT", "29500"},
                            {"LOCAL_RANK", "1"},
                            {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Variables openmpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "5"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "5"},
                           {"PMIX_NAMESPACE", "namespace-1"}};
const Variables slurm_step = {{"SLURM_JOB_ID", "77"},        {"SLURM_STEP_ID", "3"},
                              {"SLURM_PROCID", "6"},         {"SLURM_LOCALID", "6"},
                              {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_NUM_NODES", "1"}};

const Variables torch = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
const Variables pmi = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "job-5"}, {"MPI_LOCALNRANKS", "4"}};

struct Launcher {
  std::string name;
  Variables variables;
  std::string rank;                   ///< the variable that carries it
  std::string size;                   ///< the variable that carries it
  std::vector<std::string> required;  ///< besides the one the launcher is recognised by
  std::string recognised_by;
};

std::vector<Launcher> launchers() {
  return {{"iridium",
           iridium_run,
           "IRIDIUM_RANK",
           "IRIDIUM_SIZE",
           {"IRIDIUM_RANK", "IRIDIUM_SIZE"},
           "IRIDIUM_RANK"},
          {"torchrun",
           torchrun,
           "RANK",
           "WORLD_SIZE",
           {"RANK", "WORLD_SIZE", "MASTER_PORT"},
           "TORCHELASTIC_RUN_ID"},
          {"openmpi",
           openmpi,
           "OMPI_COMM_WORLD_RANK",
           "OMPI_COMM_WORLD_SIZE",
           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"},
           "OMPI_COMM_WORLD_RANK"},
          {"slurm",
           slurm_step,
           "SLURM_PROCID",
           "SLURM_STEP_NUM_TASKS",
           {"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
           "SLURM_STEP_ID"},
          {"torch", torch, "RANK", "WORLD_SIZE", {"RANK", "MASTER_PORT"}, "WORLD_SIZE"},
          {"pmi", pmi, "PMI_RANK", "PMI_SIZE", {"PMI_RANK", "PMI_SIZE"}, "PMI_RANK"}};
}

void expect_message(const Error& error, const std::vector<std::string>& parts) {
  const std::string message = error.what();
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

TEST(FindJob, WithoutALauncherIsAWorldOfOne) {
  for (const Variables& variables :
       {Variables{}, Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, Variables{{"RANK", "3"}},
        Variables{{"IRIDIUM_RANK", ""}}, Variables{{"TORCHELASTIC_RUN_ID", ""}}}) {
    const Job job = job_of(variables);
    EXPECT_EQ(job.rank, 0);
    EXPECT_EQ(job.size, 1);
    EXPECT_EQ(job.launcher, "single");
  }
}

TEST(FindJob, ATokenAloneIsHalfAJob) {
  const Error error =
      expect_error(Errc::invalid_argument, [] { job_of({{"IRIDIUM_TOKEN", "left over"}}); });
  expect_message(error, {"IRIDIUM_TOKEN is set but IRIDIUM_RANK, IRIDIUM_SIZE are not"});
}

TEST(FindJob, NeedsNoMoreThanARankAndASizeFromIridiumsVariables) {
  const Job first = job_of({{"IRIDIUM_RANK", "0"}, {"IRIDIUM_SIZE", "2"}});
  const Job second = job_of({{"IRIDIUM_RANK", "1"}, {"IRIDIUM_SIZE", "2"}});
  EXPECT_EQ(second.rank, 1);
  EXPECT_EQ(second.size, 2);
  EXPECT_EQ(second.rendezvous, first.rendezvous);
  EXPECT_EQ(second.token, first.token);
}

TEST(FindJob, ThrowsRatherThanLeaveARankAlone) {
  for (const Variables& variables :
       {Variables{{"WORLD_SIZE", "4"}}, Variables{{"RANK", "3"}, {"WORLD_SIZE", "4"}},
        Variables{{"PMI_SIZE", "4"}}, Variables{{"PMI_RANK", "1"}}}) {
    const Error error = expect_error(Errc::invalid_argument, [&] { job_of(variables); });
    expect_message(error, {variables.rbegin()->first, "are incomplete"});
  }
  expect_message(
      expect_error(Errc::invalid_argument, [] { job_of({{"WORLD_SIZE", "4"}}); }),
      {"WORLD_SIZE is set but RANK, MASTER_PORT are not: the variables of torch.distributed are "
       "incomplete"});
}

TEST(FindJob, ReadsIridiumRun) {
  const Job job = job_of(iridium_run);
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.size, 4);
  EXPECT_EQ(job.launcher, "iridium");
  EXPECT_EQ(job.rendezvous, "job name");
  EXPECT_EQ(job.token, "secret");
}

TEST(FindJob, ReadsTorchrun) {
  const Job job = job_of(torchrun);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 2);
  EXPECT_EQ(job.launcher, "torchrun");
}

TEST(FindJob, ReadsOpenMpi) {
  const Job job = job_of(openmpi);
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.size, 5);
  EXPECT_EQ(job.launcher, "openmpi");
}

TEST(FindJob, ReadsASlurmStep) {
  const Job job = job_of(slurm_step);
  EXPECT_EQ(job.rank, 6);
  EXPECT_EQ(job.size, 8);
  EXPECT_EQ(job.launcher, "slurm");
}

TEST(FindJob, ReadsTorchsVariables) {
  const Job job = job_of(torch);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 2);
  EXPECT_EQ(job.launcher, "torch");
}

TEST(FindJob, ReadsPmi) {
  const Job job = job_of(pmi);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 4);
  EXPECT_EQ(job.launcher, "pmi");
}

TEST(FindJob, PrefersTheInnermostLauncher) {
  Variables all = pmi;
  EXPECT_EQ(job_of(all).launcher, "pmi");
  all.insert(torch.begin(), torch.end());
  EXPECT_EQ(job_of(all).launcher, "torch");
  all.insert(slurm_step.begin(), slurm_step.end());
  EXPECT_EQ(job_of(all).launcher, "slurm");
  all.insert(openmpi.begin(), openmpi.end());
  EXPECT_EQ(job_of(all).launcher, "openmpi");
  all.insert(torchrun.begin(), torchrun.end());
  EXPECT_EQ(job_of(all).launcher, "torchrun");
  all.insert(iridium_run.begin(), iridium_run.end());
  EXPECT_EQ(job_of(all).launcher, "iridium");
}

/// What `srun -n 1` leaves to the launcher that it runs, and that one to its ranks.
Variables in_a_step_of_one_task(const Variables& variables) {
  Variables all = with(with(slurm_step, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0");
  all.insert(variables.begin(), variables.end());
  return all;
}

TEST(FindJob, TakesASlurmStepOfOneTaskForWhatRunsALauncher) {
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    if (launcher.name == "slurm") continue;
    const Job job = job_of(in_a_step_of_one_task(launcher.variables));
    EXPECT_EQ(job.launcher, launcher.name);
    EXPECT_EQ(std::to_string(job.rank), launcher.variables.at(launcher.rank));
    EXPECT_EQ(std::to_string(job.size), launcher.variables.at(launcher.size));
  }
}

TEST(FindJob, TakesASlurmStepOfOneTaskWhereNobodyAnnouncesSeveralRanks) {
  for (const Variables& variables :
       {Variables{}, Variables{{"WORLD_SIZE", "1"}}, Variables{{"PMI_RANK", "0"}},
        Variables{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}}) {
    const Job job = job_of(in_a_step_of_one_task(variables));
    EXPECT_EQ(job.launcher, "slurm");
    EXPECT_EQ(job.size, 1);
  }
}

TEST(FindJob, ThrowsRatherThanLeaveARankAloneInASlurmStepOfOneTask) {
  for (const char* size : {"WORLD_SIZE", "PMI_SIZE"})
    expect_message(
        expect_error(Errc::invalid_argument, [&] { job_of(in_a_step_of_one_task({{size, "4"}})); }),
        {size, "are incomplete"});
}

TEST(FindJob, DoesNotFallBackFromAnIncompleteLauncher) {
  Variables all = slurm_step;
  all["OMPI_COMM_WORLD_RANK"] = "0";
  expect_error(Errc::invalid_argument, [&] { job_of(all); });
}

TEST(FindJob, NamesTheMissingAndThePresentVariable) {
  for (const Launcher& launcher : launchers())
    for (const std::string& missing : launcher.required)
      for (const bool empty : {false, true}) {
        SCOPED_TRACE(launcher.name + " without " + missing);
        Variables variables = launcher.variables;
        if (empty)
          variables[missing] = "";
        else
          variables.erase(missing);
        const Error error = expect_error(Errc::invalid_argument, [&] { job_of(variables); });
        expect_message(error, {missing + " is not"});
        for (const std::string& present : launcher.required)
          if (present != missing) expect_message(error, {present});
        if (launcher.recognised_by != missing) expect_message(error, {launcher.recognised_by});
      }
}

TEST(FindJob, RefusesWhatIsNoNumber) {
  for (const Launcher& launcher : launchers())
    for (const std::string& variable : {launcher.rank, launcher.size})
      for (const char* value :
           {"x", "-1", "+1", " 1", "1 ", "1.0", "0x1", "99999999999", "18446744073709551616"}) {
        SCOPED_TRACE(launcher.name);
        const Error error = expect_error(
            Errc::invalid_argument, [&] { job_of(with(launcher.variables, variable, value)); });
        expect_message(error, {variable, "'" + std::string(value) + "'"});
      }
}

TEST(FindJob, RefusesARankOutOfRange) {
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    const std::string size = launcher.variables.at(launcher.size);
    const Error error = expect_error(
        Errc::invalid_argument, [&] { job_of(with(launcher.variables, launcher.rank, size)); });
    expect_message(error, {"the rank is " + size, "0 to " + std::to_string(std::stoi(size) - 1)});
  }
}

TEST(FindJob, RefusesNoRanksAndTooManyRanks) {
  for (const Launcher& launcher : launchers())
    for (const char* size : {"0", "65", "1000000"}) {
      SCOPED_TRACE(launcher.name + " " + size);
      Variables variables = with(launcher.variables, launcher.size, size);
      variables[launcher.rank] = "0";
      variables.erase("LOCAL_WORLD_SIZE");
      variables.erase("MPI_LOCALNRANKS");
      variables.erase("OMPI_COMM_WORLD_LOCAL_SIZE");
      const Error error = expect_error(Errc::invalid_argument, [&] { job_of(variables); });
      expect_message(error, {std::string(size) + " ranks", "1 to 64"});
    }
}

TEST(FindJob, TakesTheLargestJob) {
  const Job job = job_of(with(with(iridium_run, "IRIDIUM_SIZE", "64"), "IRIDIUM_RANK", "63"));
  EXPECT_EQ(job.size, max_ranks);
  EXPECT_EQ(job.rank, max_ranks - 1);
}

TEST(FindJob, RefusesSeveralHosts) {
  for (const Variables& variables :
       {with(torchrun, "LOCAL_WORLD_SIZE", "1"), with(torch, "LOCAL_WORLD_SIZE", "1"),
        with(pmi, "MPI_LOCALNRANKS", "2"), with(openmpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        with(slurm_step, "SLURM_STEP_NUM_NODES", "2")}) {
    const Error error = expect_error(Errc::unsupported, [&] { job_of(variables); });
    expect_message(error, {"several hosts are not supported"});
  }
}

TEST(FindJob, RefusesAHostCountThatIsNoNumber) {
  expect_message(expect_error(Errc::invalid_argument,
                              [] { job_of(with(torchrun, "LOCAL_WORLD_SIZE", "two")); }),
                 {"LOCAL_WORLD_SIZE", "'two'"});
  expect_message(expect_error(Errc::invalid_argument,
                              [] { job_of(with(openmpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "-5")); }),
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "'-5'"});
  expect_message(expect_error(Errc::invalid_argument,
                              [] { job_of(with(slurm_step, "SLURM_STEP_NUM_NODES", "1-2")); }),
                 {"SLURM_STEP_NUM_NODES", "'1-2'"});
}

TEST(FindJob, TakesOneHostWhenTheLauncherDoesNotSay) {
  for (const Launcher& launcher : launchers()) {
    Variables variables = launcher.variables;
    for (const char* name : {"LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "SLURM_STEP_NUM_NODES"})
      variables.erase(name);
    EXPECT_EQ(job_of(variables).launcher, launcher.name);
  }
}

TEST(FindJob, TakesASlurmBatchScriptOrShellForAWorldOfOne) {
  const Variables batch = {{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(job_of(batch).launcher, "single");
  // SLURM_BATCH_SCRIPT, SLURM_EXTERN_CONT, SLURM_INTERACTIVE_STEP and SLURM_PENDING_STEP.
  for (const char* step : {"4294967291", "4294967292", "4294967290", "4294967293"}) {
    const Job job = job_of(with(slurm_step, "SLURM_STEP_ID", step));
    EXPECT_EQ(job.launcher, "single") << step;
    EXPECT_EQ(job.size, 1) << step;
  }
}

TEST(FindJob, RefusesASlurmStepThatIsNoNumber) {
  const Error error = expect_error(Errc::invalid_argument,
                                   [] { job_of(with(slurm_step, "SLURM_STEP_ID", "batch")); });
  expect_message(error, {"SLURM_STEP_ID", "'batch'"});
}

TEST(FindJob, GivesAllRanksOfAJobTheSameNameAndToken) {
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    const Job first = job_of(with(launcher.variables, launcher.rank, "0"));
    const Job second = job_of(with(launcher.variables, launcher.rank, "1"));
    EXPECT_EQ(first.rendezvous, second.rendezvous);
    EXPECT_EQ(first.token, second.token);
    EXPECT_FALSE(first.rendezvous.empty());
    EXPECT_FALSE(first.token.empty());
  }
}

TEST(FindJob, GivesDifferentJobsDifferentNames) {
  std::multiset<std::string> names;
  for (const Variables& variables :
       {torchrun, with(torchrun, "TORCHELASTIC_RESTART_COUNT", "1"),
        with(torchrun, "MASTER_PORT", "29501"), with(torchrun, "TORCHELASTIC_RUN_ID", "other"),
        openmpi, with(openmpi, "PMIX_NAMESPACE", "namespace-2"), slurm_step,
        with(slurm_step, "SLURM_STEP_ID", "4"), with(slurm_step, "SLURM_JOB_ID", "78"), iridium_run,
        with(iridium_run, "IRIDIUM_JOB", "another"), torch, with(torch, "MASTER_PORT", "29501"),
        pmi, with(pmi, "PMI_JOBID", "job-6")})
    names.insert(job_of(variables).rendezvous);
  for (const std::string& name : names) EXPECT_EQ(names.count(name), 1u) << name;
}

/// Every variable in which a launcher puts a local rank, each with a number of its own.
const Variables all_local_ranks = {
    {"IRIDIUM_LOCAL_RANK", "10"}, {"LOCAL_RANK", "11"},      {"OMPI_COMM_WORLD_LOCAL_RANK", "12"},
    {"SLURM_LOCALID", "13"},      {"MPI_LOCALRANKID", "14"}, {"PMI_LOCAL_RANK", "15"}};
const std::map<std::string, std::string> local_rank_variables = {
    {"iridium", "IRIDIUM_LOCAL_RANK"},
    {"torchrun", "LOCAL_RANK"},
    {"openmpi", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"slurm", "SLURM_LOCALID"},
    {"torch", "LOCAL_RANK"},
    {"pmi", "MPI_LOCALRANKID"}};

Variables without_local_ranks(Variables variables) {
  for (const auto& [name, value] : all_local_ranks) variables.erase(name);
  return variables;
}

TEST(FindJob, TakesTheLocalRankFromTheLaunchersOwnVariable) {
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    Variables variables = without_local_ranks(launcher.variables);
    variables.insert(all_local_ranks.begin(), all_local_ranks.end());
    const Job job = job_of(variables);
    const std::string& own = local_rank_variables.at(launcher.name);
    ASSERT_TRUE(job.local_rank);
    EXPECT_EQ(std::to_string(*job.local_rank), all_local_ranks.at(own));
    EXPECT_EQ(job.local_rank_variable, own);
  }
}

TEST(FindJob, TakesNoLocalRankFromAnotherLauncher) {
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    Variables variables = without_local_ranks(launcher.variables);
    variables.insert(all_local_ranks.begin(), all_local_ranks.end());
    variables.erase(local_rank_variables.at(launcher.name));
    if (launcher.name == "pmi") variables.erase("PMI_LOCAL_RANK");
    const Job job = job_of(variables);
    EXPECT_EQ(job.local_rank, std::nullopt);
    EXPECT_EQ(job.local_rank_variable, "");
  }
  const Job single = job_of(all_local_ranks);
  EXPECT_EQ(single.launcher, "single");
  EXPECT_EQ(single.local_rank, std::nullopt);
}

TEST(FindJob, KnowsBothNamesOfPmisLocalRank) {
  const Job job = job_of(with(pmi, "PMI_LOCAL_RANK", "2"));
  EXPECT_EQ(job.local_rank, 2);
  EXPECT_EQ(job.local_rank_variable, "PMI_LOCAL_RANK");
}

TEST(FindJob, OfTorchrunInASlurmStepTakesTorchrunsLocalRank) {
  // srun starts one torchrun, which starts the ranks.
  Variables variables = slurm_step;
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_LOCALID"] = "0";
  variables["SLURM_STEP_NUM_TASKS"] = "1";
  variables.insert(torchrun.begin(), torchrun.end());
  const Job job = job_of(variables);
  EXPECT_EQ(job.launcher, "torchrun");
  EXPECT_EQ(job.local_rank, 1);
  EXPECT_EQ(job.local_rank_variable, "LOCAL_RANK");
  variables.erase("LOCAL_RANK");
  EXPECT_EQ(job_of(variables).local_rank, std::nullopt);
}

TEST(FindJob, RefusesALocalRankThatIsNoNumber) {
  for (const Launcher& launcher : launchers())
    for (const char* value : {"x", "-1", "1.0", "99999999999"}) {
      SCOPED_TRACE(launcher.name);
      const std::string& variable = local_rank_variables.at(launcher.name);
      const Error error = expect_error(Errc::invalid_argument,
                                       [&] { job_of(with(launcher.variables, variable, value)); });
      expect_message(error, {variable, "'" + std::string(value) + "'"});
    }
}

TEST(CheckJob, RefusesANegativeLocalRank) {
  Job job = {0, 1, "", "", ""};
  job.local_rank = 0;
  EXPECT_NO_THROW(check_job(job));
  job.local_rank = -1;
  expect_message(expect_error(Errc::invalid_argument, [&] { check_job(job); }),
                 {"the local rank is -1", "0 or more"});
}

TEST(FindJob, OfTheProcessReadsItsEnvironment) {
  for (const auto& [name, value] : iridium_run) ::setenv(name.c_str(), value.c_str(), 1);
  const Job job = Job::from_environment();
  for (const auto& [name, value] : iridium_run) ::unsetenv(name.c_str());
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.size, 4);
  EXPECT_EQ(job.rendezvous, "job name");
}

TEST(CheckJob, KnowsWhichRanksCanBe) {
  EXPECT_NO_THROW(check_job({0, 1, "", "", ""}));
  EXPECT_NO_THROW(check_job({63, 64, "", "", ""}));
  for (const auto& [rank, size] :
       std::vector<std::pair<int, int>>{{-1, 1}, {1, 1}, {0, 0}, {0, -1}, {0, 65}, {64, 64}})
    expect_error(Errc::invalid_argument, [&] { check_job({rank, size, "", "", ""}); });
}

TEST(MakeLocalJobs, NumbersRanksThatMeetUnderOneName) {
  for (const int size : {1, 3, max_ranks}) {
    const std::vector<Job> jobs = make_local_jobs(size);
    ASSERT_EQ(jobs.size(), static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      const Job& job = jobs[static_cast<std::size_t>(rank)];
      EXPECT_EQ(job.rank, rank);
      EXPECT_EQ(job.size, size);
      EXPECT_EQ(job.launcher, "threads");
      EXPECT_EQ(job.rendezvous, jobs[0].rendezvous);
      EXPECT_EQ(job.token, jobs[0].token);
    }
  }
}

TEST(MakeLocalJobs, GivesEveryCallAFreshNameAndToken) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) {
    const Job job = make_local_jobs(2).front();
    names.insert(job.rendezvous);
    names.insert(job.token);
  }
  EXPECT_EQ(names.size(), 200u);
}

TEST(MakeLocalJobs, RefusesSizesThatCannotBe) {
  for (const int size : {0, -1, 65}) {
    const Error error = expect_error(Errc::invalid_argument, [&] { make_local_jobs(size); });
    expect_message(error, {std::to_string(size), "1 to 64"});
  }
}

}  // namespace
}  // namespace iridium
