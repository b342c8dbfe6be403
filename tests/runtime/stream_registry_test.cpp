// Streams that come and go, and what is kept of their work.
#include "runtime/stream_registry.h"

#include <gtest/gtest.h>

#include "iridium/errors.h"
#include "runtime/retired_windows.h"

namespace iridium::test {
namespace {

struct Work {
  bool done = true;
  bool can_be_marked = true;
  int markers = 0;  ///< that live
};

class CountedMarker final : public Marker {
 public:
  explicit CountedMarker(Work& work) : work_(work) { ++work_.markers; }
  ~CountedMarker() override { --work_.markers; }
  CountedMarker(const CountedMarker&) = delete;
  CountedMarker& operator=(const CountedMarker&) = delete;
  bool reached() const override { return work_.done; }

 private:
  Work& work_;
};

/// Knows nothing but the end of its work.
class PlainStream final : public detail::StreamImpl {
 public:
  explicit PlainStream(Work& work) : work_(work) {}
  ~PlainStream() override { tell_end(std::make_unique<CountedMarker>(work_)); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  std::string place() const override { return "nowhere"; }
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, unsigned char, std::size_t) override {}
  void call(std::function<void()>) override {}
  void launch_kernel(const detail::KernelEntry&, const void*, int) override {}
  std::shared_ptr<const detail::EventImpl> record() override { return nullptr; }
  void wait(std::shared_ptr<const detail::EventImpl>) override {}
  void retain(std::shared_ptr<const detail::Resource>) override {}
  void retain_in_capture(std::shared_ptr<const detail::Resource>) override {}
  void synchronize() override {}
  bool idle() override { return work_.done; }
  void begin_capture() override {}
  std::shared_ptr<const detail::GraphImpl> end_capture() override { return nullptr; }
  CaptureStatus capture_status() const override { return CaptureStatus::none; }
  void launch(std::shared_ptr<const detail::GraphImpl>) override {}
  void* native_handle() const override { return nullptr; }
  void close() noexcept override {}
  std::unique_ptr<Marker> mark() override {
    if (!work_.can_be_marked) throw Error(Errc::stream_failed, "the device has failed");
    return std::make_unique<CountedMarker>(work_);
  }

 private:
  Work& work_;
};

TEST(StreamRegistry, StreamsThatComeAndGoForLongLeaveLittleBehind) {
  Work quick;
  Work stuck;
  stuck.done = false;
  const auto registry = std::make_shared<StreamRegistry>();
  registry->add(std::make_shared<PlainStream>(stuck));
  for (int i = 0; i < 10'000; ++i) {
    registry->add(std::make_shared<PlainStream>(quick));
    ASSERT_LE(quick.markers, 100) << "after " << i << " streams";
  }
  EXPECT_EQ(stuck.markers, 1) << "work that is not done is forgotten";
  EXPECT_FALSE(all_reached(*registry->mark_all()));
  stuck.done = true;
  EXPECT_TRUE(all_reached(*registry->mark_all()));
  EXPECT_EQ(stuck.markers, 0);
}

TEST(StreamRegistry, CountsWorkOnStreamsThatAreNotHere) {
  Work work;
  work.done = false;
  const auto registry = std::make_shared<StreamRegistry>();
  const auto marker = std::make_shared<CountedMarker>(work);
  for (int i = 0; i < 100; ++i) registry->add_work(marker);
  EXPECT_LE(marker.use_count(), 2) << "the same work counts once";
  EXPECT_FALSE(all_reached(*registry->mark_all()));
  work.done = true;
  EXPECT_TRUE(all_reached(*registry->mark_all()));
  EXPECT_EQ(marker.use_count(), 1);
  for (int i = 0; i < 1000; ++i) {
    registry->add_work(std::make_shared<CountedMarker>(work));
    ASSERT_LE(work.markers, 100) << "after " << i << " pieces of work";
  }
}

class EmptyWindow final : public Window {
  void map(int, const FileDescriptor&) override {}
};

TEST(RetiredWindows, StayWhereStreamsCannotBeMarkedAndBotherNobody) {
  Work work;
  work.can_be_marked = false;
  const auto registry = std::make_shared<StreamRegistry>();
  const auto stream = std::make_shared<PlainStream>(work);
  registry->add(stream);
  auto window = std::make_shared<EmptyWindow>();
  const std::weak_ptr<Window> watch = window;
  retire(std::move(window), registry);
  sweep_retired_windows();
  EXPECT_FALSE(watch.expired());
  work.can_be_marked = true;
  sweep_retired_windows();
  EXPECT_TRUE(watch.expired());
}

TEST(StreamRegistry, KnowsAStreamUntilAnotherOneHasLooked) {
  Work work;
  const auto stream = std::make_shared<PlainStream>(work);
  const auto first = std::make_shared<StreamRegistry>();
  const auto second = std::make_shared<StreamRegistry>();
  EXPECT_FALSE(first->knows(*stream));
  first->add(stream);
  EXPECT_TRUE(first->knows(*stream));
  second->add(stream);
  EXPECT_FALSE(first->knows(*stream));
  first->add(stream);
  EXPECT_TRUE(first->knows(*stream));
  work.done = false;
  EXPECT_FALSE(all_reached(*first->mark_all()));
  EXPECT_FALSE(all_reached(*second->mark_all()));
}

}  // namespace
}  // namespace iridium::test
