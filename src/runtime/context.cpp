#include "iridium/context.h"

#include <fmt/format.h>

#include <mutex>

#include "runtime/context_core.h"
#include "runtime/library_kernels.h"
#include "runtime/team_state.h"

namespace iridium {
namespace detail {

class ContextState {
 public:
  ContextState(const Job& job, const ContextOptions& options)
      : core(own_by_process(std::make_unique<ContextCore>(job, options))) {
    TeamOptions lane = options.world;
    if (lane.name.empty()) lane.name = "world";
    core->fail_together([&] {
      core->announce("world");
      // Some of the library's kernels are for certain GPUs only.
      for (const detail::KernelEntry* kernel : library_kernels())
        if (core->backend().object_to_kernel(*kernel).empty()) core->backend().prepare(*kernel);
      world = std::make_shared<TeamState>(core, core->ranks(), lane);
    });
  }

  ~ContextState() { core->leave(); }
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  /// For calls that do more than to tell a fact.
  ContextCore& own_core() const {
    core->require_own_process();
    return *core;
  }

  std::shared_ptr<ContextCore> core;
  std::shared_ptr<TeamState> world;
  std::mutex collective_mutex;  ///< making an array or a team takes several exchanges
};

}  // namespace detail

Context::Context(const ContextOptions& options) : Context(Job::from_environment(), options) {}

Context::Context(const Job& job, const ContextOptions& options)
    : state_(std::make_shared<detail::ContextState>(job, options)) {}

Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

int Context::rank() const {
  return state_->core->rank();
}
int Context::size() const {
  return state_->core->size();
}
BackendKind Context::backend() const {
  return state_->core->backend().kind();
}
int Context::device() const {
  return state_->core->backend().device();
}
Placement Context::placement() const {
  return state_->core->backend().placement();
}
int Context::lanes_at_once() const {
  return state_->core->lanes_at_once();
}
std::chrono::milliseconds Context::timeout() const {
  return state_->core->timeout();
}
std::size_t Context::heap_bytes() const {
  return state_->core->heap_bytes();
}
std::byte* Context::segment() const {
  return state_->core->heap().segment();
}
std::size_t Context::stride() const {
  return state_->core->heap().stride();
}

Link Context::link(int rank) const {
  if (rank < 0 || rank >= size())
    throw Error(Errc::invalid_argument,
                fmt::format("link: rank {} does not exist: the job has {} ranks", rank, size()));
  return state_->core->backend().link(rank);
}

std::shared_ptr<detail::Allocation> Context::allocate_bytes(std::size_t bytes,
                                                            std::size_t alignment) {
  ContextCore& core = state_->own_core();
  const std::lock_guard lock(state_->collective_mutex);
  return core.allocate(bytes, alignment);
}

bool Context::is_symmetric(const void* pointer, std::size_t bytes) const {
  return state_->own_core().heap().contains(pointer, bytes);
}

void* Context::translate(void* pointer, int rank) const {
  return state_->own_core().heap().translate(pointer, rank);
}

Team Context::world() const {
  return Team(state_->world);
}

Team Context::make_team(std::span<const int> ranks, const TeamOptions& options) {
  state_->core->require_own_process();
  const std::lock_guard lock(state_->collective_mutex);
  return Team(std::make_shared<detail::TeamState>(
      state_->core, std::vector<int>(ranks.begin(), ranks.end()), options));
}

void Context::barrier() {
  world().barrier();
}

Stream Context::make_stream() {
  auto stream = state_->own_core().backend().make_stream();
  state_->core->streams()->add(stream);
  return Stream(std::move(stream));
}

void Context::launch_kernel(StreamRef& stream, Grid grid, const detail::KernelEntry& entry,
                            const void* kernel) const {
  detail::StreamImpl& queue = stream.impl();
  state_->core->adopt(stream.impl_);
  state_->core->launch(queue, grid, entry, kernel);
}

void Context::prepare_kernel(const detail::KernelEntry& entry) const {
  Backend& backend = state_->own_core().backend();
  if (const std::string objection = backend.object_to_kernel(entry); !objection.empty())
    throw Error(Errc::unsupported, objection);
  backend.prepare(entry);
}

StreamRef Context::borrow_stream(void* native_handle) {
  auto stream = state_->own_core().backend().borrow_stream(native_handle);
  state_->core->streams()->add(stream);
  return StreamRef(std::move(stream));
}

}  // namespace iridium
