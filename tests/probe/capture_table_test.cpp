// What a capture lets pass and what it refuses: the table in docs/capture.md, on every backend.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "support/markdown_table.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/source_folder.h"

namespace iridium::test {
namespace {

/// What the calls below need.
struct Scene {
  Context context;
  Stream stream = context.make_stream();  ///< captures
  Stream other = context.make_stream();
  Team team = context.make_team({0});
  SymmetricArray<int> from = context.allocate<int>(100);
  SymmetricArray<int> to = context.allocate<int>(100);
  std::vector<int> pageable = std::vector<int>(100);
  std::optional<Graph> graph;  ///< one fill of `to`

  Scene() {
    other.begin_capture();
    other.fill(to.data(), 1, to.bytes());
    graph = other.end_capture();
  }
};

void in_another_thread(const std::function<void()>& body) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

struct Call {
  const char* name;
  std::function<void(Scene&)> make;
};

const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      {"`copy` between arrays",
       [](Scene& s) { s.stream.copy(s.to.data(), s.from.data(), s.to.bytes()); }},
      {"`copy` from pageable memory",
       [](Scene& s) { s.stream.copy(s.to.data(), s.pageable.data(), s.to.bytes()); }},
      {"`copy` to pageable memory",
       [](Scene& s) { s.stream.copy(s.pageable.data(), s.to.data(), s.to.bytes()); }},
      {"`fill`", [](Scene& s) { s.stream.fill(s.to.data(), 0, s.to.bytes()); }},
      {"`call`", [](Scene& s) { s.stream.call([] {}); }},
      {"an operation (`device_barrier`)", [](Scene& s) { device_barrier(s.stream, s.team); }},
      {"`launch` of a graph", [](Scene& s) { s.stream.launch(*s.graph); }},
      {"`copy`, by another thread",
       [](Scene& s) {
         in_another_thread([&] { s.stream.copy(s.to.data(), s.from.data(), s.to.bytes()); });
       }},
      {"`retain_on`", [](Scene& s) { s.to.retain_on(s.stream); }},
      {"`synchronize`", [](Scene& s) { s.stream.synchronize(); }},
      {"`synchronize`, by another thread",
       [](Scene& s) { in_another_thread([&] { s.stream.synchronize(); }); }},
      {"`idle`", [](Scene& s) { s.stream.idle(); }},
      {"`begin_capture`", [](Scene& s) { s.stream.begin_capture(); }},
      {"`end_capture`, by another thread",
       [](Scene& s) { in_another_thread([&] { s.stream.end_capture(); }); }},
      {"`copy` on another stream",
       [](Scene& s) { s.other.copy(s.to.data(), s.from.data(), s.to.bytes()); }},
      {"`copy` from pageable memory on another stream",
       [](Scene& s) { s.other.copy(s.to.data(), s.pageable.data(), s.to.bytes()); }},
      {"`launch` of a graph on another stream", [](Scene& s) { s.other.launch(*s.graph); }},
      {"`synchronize` of another stream", [](Scene& s) { s.other.synchronize(); }},
      {"`synchronize` of another stream, by another thread",
       [](Scene& s) { in_another_thread([&] { s.other.synchronize(); }); }},
      {"`idle` of another stream", [](Scene& s) { s.other.idle(); }},
      {"a capture on another stream",
       [](Scene& s) {
         s.other.begin_capture();
         s.other.fill(s.to.data(), 0, s.to.bytes());
         s.other.end_capture();
       }},
      {"`make_stream`, and dropping it", [](Scene& s) { s.context.make_stream(); }},
      {"`borrow_stream`", [](Scene& s) { s.context.borrow_stream(s.other.native_handle()); }},
      {"`allocate`", [](Scene& s) { s.context.allocate<int>(1); }},
      {"dropping an array", [](Scene& s) { s.from = {}; }},
      {"`make_team`", [](Scene& s) { s.context.make_team({0}); }},
      {"dropping a team", [](Scene& s) { s.team = s.context.world(); }},
      {"`Context::barrier`", [](Scene& s) { s.context.barrier(); }},
      {"`Team::barrier`", [](Scene& s) { s.team.barrier(); }},
      {"`Team::broadcast`", [](Scene& s) { s.team.broadcast(1, 0); }},
      {"`Team::all_gather`", [](Scene& s) { s.team.all_gather(1); }},
      {"`Team::check`", [](Scene& s) { s.team.check(); }},
      {"`Team::lane`", [](Scene& s) { static_cast<void>(s.team.lane()); }},
      {"making a context, and dropping it",
       [](Scene&) { Context(ContextOptions{.name = "another"}); }},
  };
  return all;
}

std::string describe(CaptureStatus status) {
  switch (status) {
    case CaptureStatus::active:
      return "goes on";
    case CaptureStatus::invalidated:
      return "is broken";
    default:
      return "has ended";
  }
}

/// What becomes of the call, and of the capture.
std::vector<std::string> observe(const Call& call) {
  Scene scene;
  scene.stream.begin_capture();
  std::string outcome;
  try {
    call.make(scene);
  } catch (const Error& error) {
    outcome = "refused: " + std::string(name(error.code()));
  }
  const std::string afterwards = describe(scene.stream.capture_status());
  const Graph graph = scene.stream.end_capture();
  if (outcome.empty()) outcome = graph.node_count() > 0 ? "recorded" : "done at once";
  scene.other.synchronize();
  scene.stream.launch(graph);
  scene.stream.fill(scene.to.data(), 0, scene.to.bytes());
  scene.stream.synchronize();
  scene.context.barrier();
  return {outcome, afterwards};
}

TEST(CaptureTable, IsTrue) {
  const auto table = read_table(source_file("docs/capture.md"), "## Iridium's calls");
  std::size_t known = 0;
  for (const Call& call : calls()) {
    SCOPED_TRACE(call.name);
    const std::vector<std::string> seen = observe(call);
    const auto row = table.find(call.name);
    if (row == table.end()) {
      ADD_FAILURE() << "lacks | " << call.name << " | " << seen[0] << " | " << seen[1] << " |";
      continue;
    }
    ++known;
    EXPECT_EQ(row->second, seen);
  }
  EXPECT_EQ(known, table.size()) << "the table has rows of calls that nobody tries";
}

}  // namespace
}  // namespace iridium::test
