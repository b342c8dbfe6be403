// Which GPU a rank takes, and what the ranks of a job make of each other's.
#include "backend/cuda/gpu_place.h"

#include <gtest/gtest.h>

#include "backend/cuda/fake_driver.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

TEST(GpuChoice, FollowsOptionContextLocalRankAndRankInThisOrder) {
  FakeMachine machine(FakeMachine::gpus(4));
  const std::vector<Gpu> gpus = visible_gpus();
  BackendRequest request = {.rank = 6};
  EXPECT_EQ(choose_gpu(request, gpus).gpu.device, 2);
  request.local_rank = 5;
  EXPECT_EQ(choose_gpu(request, gpus).gpu.device, 1);
  EXPECT_EQ(choose_gpu(request, gpus).reason,
            "its local rank is 5, and the number of usable GPUs 4");
  request.local_rank_variable = "SLURM_LOCALID";
  EXPECT_EQ(choose_gpu(request, gpus).reason,
            "its local rank is 5 (SLURM_LOCALID), and the number of usable GPUs 4");
  machine.make_current(3);
  EXPECT_EQ(choose_gpu(request, gpus).gpu.device, 3);
  EXPECT_FALSE(choose_gpu(request, gpus).is_explicit);
  request.device = 0;
  EXPECT_EQ(choose_gpu(request, gpus).gpu.device, 0);
  EXPECT_TRUE(choose_gpu(request, gpus).is_explicit);
  for (const int device : {-1, 4}) {
    request.device = device;
    const Error error = expect_error(Errc::invalid_argument, [&] { choose_gpu(request, gpus); });
    EXPECT_NE(std::string(error.what()).find("4 visible"), std::string::npos) << error.what();
  }
}

TEST(GpuChoice, PassesOverGpusThatIridiumDoesNotRunOn) {
  std::vector<FakeGpu> gpus = FakeMachine::gpus(3);
  gpus[1] = {.name = "NVIDIA T400", .id = 1, .major = 7, .minor = 5};
  FakeMachine machine(gpus);
  BackendRequest request = {.rank = 1};
  EXPECT_EQ(choose_gpu(request, visible_gpus()).gpu.device, 2);
  EXPECT_EQ(choose_gpu(request, visible_gpus()).reason,
            "its rank is 1, and the number of usable GPUs 2");
  request.rank = 2;
  EXPECT_EQ(choose_gpu(request, visible_gpus()).gpu.device, 0);
  request.device = 1;
  EXPECT_EQ(choose_gpu(request, visible_gpus()).gpu.device, 1) << "whoever asks for it gets it";
}

TEST(GpuPlaces, SurviveTheWay) {
  const GpuPlace place = {.process = "12-abc",
                          .device = 3,
                          .uuid = fake_uuid(7),
                          .reason = "its rank is 3, and the number of usable GPUs 8",
                          .is_explicit = true,
                          .usable = {fake_uuid(6), fake_uuid(7)}};
  const GpuPlace read = parse_gpu_place(encode(place));
  EXPECT_EQ(read.process, place.process);
  EXPECT_EQ(read.device, place.device);
  EXPECT_EQ(read.uuid, place.uuid);
  EXPECT_EQ(read.reason, place.reason);
  EXPECT_EQ(read.is_explicit, place.is_explicit);
  EXPECT_EQ(read.usable, place.usable);
}

/// Ranks on these GPUs of a machine with `count`.
std::vector<GpuPlace> places_on(const std::vector<int>& gpus, int count) {
  std::vector<GpuPlace> places;
  for (const int gpu : gpus) {
    GpuPlace place = {.process = "process-" + std::to_string(places.size()),
                      .device = gpu,
                      .uuid = fake_uuid(gpu),
                      .reason = "of reason " + std::to_string(places.size()),
                      .is_explicit = false,
                      .usable = {}};
    for (int visible = 0; visible < count; ++visible) place.usable.push_back(fake_uuid(visible));
    places.push_back(place);
  }
  return places;
}

TEST(GpuPlaces, RanksShareAGpuByThemselvesOnlyWhereNoneIsIdle) {
  check_places(places_on({0, 1, 2, 3}, 4));
  check_places(places_on({0, 1}, 4));
  check_places(places_on({0, 0, 0}, 1));
  check_places(places_on({0, 1, 0, 1}, 2));
  const Error error =
      expect_error(Errc::invalid_argument, [] { check_places(places_on({0, 1, 0, 3}, 8)); });
  const std::string text = error.what();
  EXPECT_EQ(error.ranks(), (std::vector<int>{0, 2}));
  EXPECT_NE(text.find("5 other GPUs are idle"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2 chose its GPU 0 because of reason 2"), std::string::npos) << text;
}

TEST(GpuPlaces, RanksMayShareTheGpuThatAllOfThemName) {
  std::vector<GpuPlace> places = places_on({0, 0}, 4);
  places[0].is_explicit = true;
  expect_error(Errc::invalid_argument, [&] { check_places(places); });
  places[1].is_explicit = true;
  check_places(places);
}

TEST(GpuPlaces, HiddenGpusOfOthersCountAsIdleOnlyWhenNobodyHasThem) {
  std::vector<GpuPlace> places = places_on({0, 1}, 2);
  places[0].usable = {fake_uuid(0)};
  places[1].usable = {fake_uuid(1)};
  check_places(places);
}

TEST(GpuPlaces, ThreadsOfOneProcessAreToldApartFromProcessesOfTheSameNumber) {
  std::vector<GpuPlace> places = places_on({0, 1}, 2);
  places[0].process = "1-abc";
  places[1].process = "1-def";
  check_places(places);
  places[1].process = "1-abc";
  EXPECT_EQ(expect_error(Errc::unsupported, [&] { check_places(places); }).ranks(),
            (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace iridium::test
