#include "iridium/bootstrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "iridium/errors.h"
#include "runtime/find_job.h"

namespace iridium {
namespace {

/// The variables of one launcher: what is required is there, or the launcher is an error.
class LauncherVariables {
 public:
  LauncherVariables(const Environment& environment, const std::string& launcher,
                    std::initializer_list<const char*> required,
                    std::initializer_list<const char*> optional = {})
      : environment_(environment), launcher_(launcher) {
    std::vector<const char*> present;
    std::vector<const char*> missing;
    for (const char* variable : required)
      (environment(variable) ? present : missing).push_back(variable);
    if (missing.empty()) return;
    for (const char* variable : optional)
      if (environment(variable)) present.push_back(variable);
    const auto names = [](const std::vector<const char*>& variables) {
      return fmt::format("{} {}", fmt::join(variables, ", "), variables.size() == 1 ? "is" : "are");
    };
    throw Error(Errc::invalid_argument,
                fmt::format("{} set but {} not: the variables of {} are incomplete", names(present),
                            names(missing), launcher));
  }

  /// Of a required one.
  std::string text(const char* variable) const { return *environment_(variable); }

  int number(const char* variable) const {
    const std::string value = text(variable);
    const auto parsed = parse_number(value);
    if (!parsed || *parsed > 1'000'000'000)
      throw Error(Errc::invalid_argument,
                  fmt::format("{} is '{}': expected a whole number", variable, value));
    return static_cast<int>(*parsed);
  }

  /// Puts into `job` what the first of the variables that is there says.
  void read_local_rank(Job& job, std::initializer_list<const char*> local_rank_variables) const {
    for (const char* variable : local_rank_variables) {
      if (job.local_rank || !environment_(variable)) continue;
      job.local_rank = number(variable);
      job.local_rank_variable = variable;
    }
  }

  /// The job's ranks are all on this host.
  void require_one_host(int size, const char* local_size_variable) const {
    const auto value = environment_(local_size_variable);
    if (!value) return;
    if (const int local = number(local_size_variable); local != size)
      throw Error(
          Errc::unsupported,
          fmt::format(
              "{} started {} ranks, {} of them on this host: several hosts are not supported yet",
              launcher_, size, local));
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

std::optional<Job> iridium_job(const Environment& environment) {
  if (!environment(variables::rank) && !environment(variables::size) &&
      !environment(variables::job) && !environment(variables::token))
    return std::nullopt;
  const LauncherVariables read(environment, "iridium run", {variables::rank, variables::size},
                               {variables::job, variables::token});
  const std::string name = environment(variables::job).value_or("iridium");
  Job job{read.number(variables::rank), read.number(variables::size), "iridium", name,
          environment(variables::token).value_or(name)};
  read.read_local_rank(job, {variables::local_rank});
  return job;
}

std::optional<Job> torchrun_job(const Environment& environment) {
  if (!environment("TORCHELASTIC_RUN_ID")) return std::nullopt;
  const LauncherVariables read(environment, "torchrun",
                               {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "MASTER_PORT"});
  const int size = read.number("WORLD_SIZE");
  read.require_one_host(size, "LOCAL_WORLD_SIZE");
  // A restarted worker group must not meet ranks of the one before.
  const std::string restart = environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  const std::string name = fmt::format("torchrun-{}-{}-{}", read.text("TORCHELASTIC_RUN_ID"),
                                       read.text("MASTER_PORT"), restart);
  Job job{read.number("RANK"), size, "torchrun", name, name};
  read.read_local_rank(job, {"LOCAL_RANK"});
  return job;
}

std::optional<Job> openmpi_job(const Environment& environment) {
  if (!environment("OMPI_COMM_WORLD_RANK") && !environment("OMPI_COMM_WORLD_SIZE"))
    return std::nullopt;
  const LauncherVariables read(environment, "Open MPI",
                               {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"});
  const int size = read.number("OMPI_COMM_WORLD_SIZE");
  read.require_one_host(size, "OMPI_COMM_WORLD_LOCAL_SIZE");
  const std::string name = fmt::format("openmpi-{}", read.text("PMIX_NAMESPACE"));
  Job job{read.number("OMPI_COMM_WORLD_RANK"), size, "openmpi", name, name};
  read.read_local_rank(job, {"OMPI_COMM_WORLD_LOCAL_RANK"});
  return job;
}

/// A batch script and an interactive shell carry Slurm's variables too, but are no ranks: their
/// step has no number, or one of Slurm's reserved ones.
bool is_slurm_rank(const Environment& environment) {
  const auto step = environment("SLURM_STEP_ID");
  constexpr std::uint64_t first_reserved_step = 0xfffffff0;
  return step && parse_number(*step).value_or(0) < first_reserved_step;
}

bool announces_several(const Environment& environment, const char* size_variable) {
  return environment(size_variable).value_or("1") != "1";
}

std::optional<Job> slurm_job(const Environment& environment) {
  if (!is_slurm_rank(environment)) return std::nullopt;
  const LauncherVariables read(
      environment, "Slurm",
      {"SLURM_STEP_ID", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"});
  const int size = read.number("SLURM_STEP_NUM_TASKS");
  if (environment("SLURM_STEP_NUM_NODES") && read.number("SLURM_STEP_NUM_NODES") != 1)
    throw Error(
        Errc::unsupported,
        fmt::format("Slurm started this step on {} hosts: several hosts are not supported yet",
                    read.number("SLURM_STEP_NUM_NODES")));
  // A step of one task may run another launcher, which started this rank.
  if (size == 1 &&
      (announces_several(environment, "WORLD_SIZE") || announces_several(environment, "PMI_SIZE")))
    return std::nullopt;
  const std::string name =
      fmt::format("slurm-{}-{}", read.text("SLURM_JOB_ID"), read.number("SLURM_STEP_ID"));
  Job job{read.number("SLURM_PROCID"), size, "slurm", name, name};
  read.read_local_rank(job, {"SLURM_LOCALID"});
  return job;
}

/// What programs for torch.distributed are started with by hand. A size of 1 needs no launcher.
std::optional<Job> torch_job(const Environment& environment) {
  if (!announces_several(environment, "WORLD_SIZE")) return std::nullopt;
  const LauncherVariables read(environment, "torch.distributed",
                               {"RANK", "WORLD_SIZE", "MASTER_PORT"}, {"MASTER_ADDR"});
  const int size = read.number("WORLD_SIZE");
  read.require_one_host(size, "LOCAL_WORLD_SIZE");
  const std::string name = fmt::format("torch-{}", read.text("MASTER_PORT"));
  Job job{read.number("RANK"), size, "torch", name, name};
  read.read_local_rank(job, {"LOCAL_RANK"});
  return job;
}

/// MPICH, Intel MPI and others.
std::optional<Job> pmi_job(const Environment& environment) {
  if (!environment("PMI_RANK") && !environment("PMI_SIZE")) return std::nullopt;
  const LauncherVariables read(environment, "PMI", {"PMI_RANK", "PMI_SIZE"}, {"PMI_JOBID"});
  const int size = read.number("PMI_SIZE");
  read.require_one_host(size, "MPI_LOCALNRANKS");
  const std::string name = fmt::format("pmi-{}", environment("PMI_JOBID").value_or("job"));
  Job job{read.number("PMI_RANK"), size, "pmi", name, name};
  read.read_local_rank(job, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"});
  return job;
}

}  // namespace

void check_job(const Job& job) {
  if (job.size < 1 || job.size > max_ranks)
    throw Error(Errc::invalid_argument,
                fmt::format("the job has {} ranks; expected 1 to {}", job.size, max_ranks));
  if (job.rank < 0 || job.rank >= job.size)
    throw Error(Errc::invalid_argument,
                fmt::format("the rank is {}; a job of {} ranks has ranks 0 to {}", job.rank,
                            job.size, job.size - 1));
  if (job.local_rank && *job.local_rank < 0)
    throw Error(Errc::invalid_argument,
                fmt::format("the local rank is {}: expected 0 or more", *job.local_rank));
}

Job find_job(const Environment& environment) {
  std::optional<Job> job;
  for (const auto launcher :
       {iridium_job, torchrun_job, openmpi_job, slurm_job, torch_job, pmi_job})
    if (!job) job = launcher(environment);
  if (!job) job = Job{0, 1, "single", "single", ""};
  check_job(*job);
  return *job;
}

Job Job::from_environment() {
  return find_job(process_environment);
}

std::vector<Job> make_local_jobs(int size) {
  const std::string name = random_token();
  const std::string token = random_token();
  std::vector<Job> jobs;
  for (int rank = 0; rank < size; ++rank) {
    jobs.push_back({rank, size, "threads", name, token});
    check_job(jobs.back());
  }
  if (size < 1) check_job({0, size, "threads", name, token});
  return jobs;
}

}  // namespace iridium
