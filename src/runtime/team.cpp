#include "iridium/team.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "iridium/errors.h"
#include "iridium/tuning.h"
#include "runtime/device_fault.h"
#include "runtime/team_state.h"

namespace iridium {
namespace detail {
namespace {

void check_ranks(const std::vector<int>& ranks, int size) {
  if (ranks.empty()) throw Error(Errc::invalid_argument, "make_team: the list of ranks is empty");
  std::vector<bool> seen(static_cast<std::size_t>(size), false);
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size)
      throw Error(
          Errc::invalid_argument,
          fmt::format("make_team: rank {} does not exist: the job has {} ranks", rank, size));
    if (seen[static_cast<std::size_t>(rank)])
      throw Error(Errc::invalid_argument,
                  fmt::format("make_team: rank {} stands twice in the list {}", rank,
                              fmt::join(ranks, ", ")));
    seen[static_cast<std::size_t>(rank)] = true;
  }
}

}  // namespace

TeamState::TeamState(std::shared_ptr<ContextCore> core, std::vector<int> ranks,
                     const TeamOptions& options)
    : core_(std::move(core)) {
  check_ranks(ranks, core_->size());
  lay_out_lane(static_cast<int>(ranks.size()), options);
  const std::string call = fmt::format("make_team({})", fmt::join(ranks, ", "));
  core_->refuse_capture(call);

  const TeamTerms terms = core_->agree(call, ranks, options);
  TeamOptions agreed = options;
  agreed.max_blocks = max_blocks_ = terms.max_blocks;
  beside_compute_ = terms.beside_compute;
  exclusive_ = terms.exclusive;
  device_ = tuning_device(terms.device);
  link_ = terms.link;
  channel_.id = core_->next_channel_id();
  channel_.name = options.name.empty() ? fmt::format("team {}", channel_.id)
                                       : fmt::format("team {}", options.name);
  layout_ = lay_out_lane(static_cast<int>(ranks.size()), agreed);
  lane_ = core_->allocate(layout_.bytes, OffsetAllocator::granule, core_->construction_limit());

  const auto self = std::find(ranks.begin(), ranks.end(), core_->rank());
  if (self != ranks.end()) place_ = static_cast<int>(self - ranks.begin());
  channel_.members = std::move(ranks);
  if (place_ >= 0) core_->mailbox().open(channel_.id);
  try {
    // Nobody signals into a lane that is not zero yet.
    core_->succeed_together(call + ": lane is ready", [this] {
      if (place_ >= 0) set_up_lane();
    });
  } catch (...) {
    core_->mailbox().close(channel_.id);
    throw;
  }
  // Last, when nothing can throw any more: the mailbox holds on to this object from here on.
  if (place_ >= 0) core_->mailbox().watch(channel_, *this);
}

void TeamState::set_up_lane() {
  core_->backend().zero(lane_->data(), layout_.scratch);
  std::uint8_t ranks[max_team_size] = {};
  std::copy(channel_.members.begin(), channel_.members.end(), ranks);
  core_->backend().write(lane_->data() + offsetof(LaneState, ranks), ranks, sizeof ranks);
  status_ = core_->statuses().take();
}

Lane TeamState::lane(std::string_view operation) const {
  require_member(std::string(operation));
  check();
  return make_lane(
      layout_,
      {.ranks = channel_.members,
       .place = place_,
       .base = lane_->data(),
       .stride = core_->heap().stride(),
       .status = status_.get(),
       .timeout_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(core_->timeout()).count()),
       .link = link_,
       .placement = core_->backend().placement(),
       .call_id = next_call_id_.fetch_add(1, std::memory_order_relaxed),
       .segment = core_->checked()
                      ? std::span<const std::byte>(core_->heap().segment(), core_->heap_bytes())
                      : std::span<const std::byte>()},
      operation);
}

void TeamState::check() const {
  core_->require_own_process();
  require_member("check");
  throw_device_fault();
  if (const auto fault = core_->mailbox().fault_of(channel_)) {
    core_->mailbox().fail(channel_, *fault);
    throw fault->error();
  }
}

void TeamState::throw_device_fault() const {
  if (std::atomic_ref(status_->failed).load(std::memory_order_acquire) == 0) return;
  const Fault fault = describe(status_->fault, channel_.members, channel_.name, core_->timeout());
  core_->mailbox().fail(channel_, fault);
  // The first one stays, also when the hosts had another.
  throw core_->mailbox().fault_of(channel_).value_or(fault).error();
}

void TeamState::on_fault() {
  std::atomic_ref(status_->abort).store(1, std::memory_order_relaxed);
}

void TeamState::on_left(int rank) {
  const auto place = std::find(ranks().begin(), ranks().end(), rank) - ranks().begin();
  std::atomic_ref(status_->left).fetch_or(std::uint64_t{1} << place, std::memory_order_relaxed);
}

TeamState::~TeamState() {
  core_->mailbox().close(channel_.id);
}

void TeamState::require_member(const std::string& call) const {
  if (place_ < 0)
    throw Error(Errc::not_a_member, fmt::format("{}: rank {} is not in {}, which has {}", call,
                                                core_->rank(), name(), list_ranks(ranks())));
}

void TeamState::require_symmetric(const char* call, const void* address, std::size_t bytes) const {
  core_->require_own_process();
  if (!core_->heap().contains(address, bytes))
    throw Error(Errc::invalid_argument,
                fmt::format("{}: {} bytes at {} do not lie in a symmetric array", call, bytes,
                            fmt::ptr(address)));
}

void TeamState::require_reachable(const char* call, const void* address, std::size_t bytes) const {
  if (!core_->checked() || bytes == 0) return;
  const std::string objection = core_->backend().object_to_memory(address);
  if (!objection.empty())
    throw Error(Errc::invalid_argument, fmt::format("{}: {} bytes at {} are {}", call, bytes,
                                                    fmt::ptr(address), objection));
}

void TeamState::require_place(const char* call, int place) const {
  if (place < 0 || place >= static_cast<int>(ranks().size()))
    throw Error(Errc::invalid_argument,
                fmt::format("{}: place {} does not exist: {} has {} members", call, place, name(),
                            ranks().size()));
}

void TeamState::require_native_atomics(const std::string& what) const {
  if (!has_native_atomics(link_))
    throw Error(Errc::unsupported,
                fmt::format("{} updates members' memory atomically, which the link {} of {} cannot",
                            what, iridium::name(link_), name()));
}

std::byte* TeamState::counterpart(const void* mine, int place) const {
  return core_->heap().translate(mine, ranks()[static_cast<std::size_t>(place)]);
}

std::vector<Contribution> TeamState::exchange(const std::string& call, Bytes mine, int patience) {
  core_->require_own_process();
  require_member(call);
  core_->refuse_capture(call);
  throw_device_fault();
  return core_->exchange(channel_, call, {std::move(mine), {}}, patience);
}

}  // namespace detail

Team::Team(std::shared_ptr<detail::TeamState> state) : state_(std::move(state)) {}

int Team::rank() const {
  state_->require_member("rank");
  return state_->place();
}

int Team::size() const {
  return static_cast<int>(state_->ranks().size());
}
bool Team::is_member() const {
  return state_->place() >= 0;
}
const std::vector<int>& Team::ranks() const {
  return state_->ranks();
}
const std::string& Team::name() const {
  return state_->name();
}
int Team::max_blocks() const {
  return state_->max_blocks();
}

bool Team::beside_compute() const {
  return state_->beside_compute();
}

Link Team::link() const {
  return state_->link();
}

Lane Team::lane(std::string_view operation) const {
  return state_->lane(operation);
}
void Team::check() const {
  state_->check();
}
void Team::retain_on(StreamRef& stream) const {
  stream.retain(state_);
}

void Team::barrier() {
  state_->exchange("barrier", {});
}

namespace {

void check_bytes(const char* call, std::size_t bytes) {
  if (bytes > Team::max_host_bytes)
    throw Error(Errc::invalid_argument,
                fmt::format("{} of {}: the limit is {}; larger data goes through the heap", call,
                            format_bytes(bytes), format_bytes(Team::max_host_bytes)));
}

}  // namespace

void Team::broadcast_bytes(std::span<std::byte> bytes, int root) {
  state_->require_member("broadcast");
  check_bytes("broadcast", bytes.size());
  if (root < 0 || root >= size())
    throw Error(
        Errc::invalid_argument,
        fmt::format("broadcast: root {} does not exist: {} has {} members", root, name(), size()));
  Bytes mine;
  if (root == state_->place()) mine.assign(bytes.begin(), bytes.end());
  const auto parts = state_->exchange(
      fmt::format("broadcast({} bytes from place {})", bytes.size(), root), std::move(mine));
  const Bytes& value = parts[static_cast<std::size_t>(root)].data;
  if (value.size() != bytes.size())
    throw Error(Errc::protocol, "broadcast: the root sent another number of bytes");
  std::copy(value.begin(), value.end(), bytes.begin());
}

void Team::all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                            int patience) {
  state_->require_member("all_gather");
  check_bytes("all_gather", mine.size());
  if (patience < 1)
    throw Error(Errc::invalid_argument,
                fmt::format("all_gather: a patience of {}; expected 1 or more", patience));
  if (all.size() != mine.size() * static_cast<std::size_t>(size()))
    throw Error(Errc::invalid_argument,
                fmt::format("all_gather: the output has {} bytes; {} members with {} bytes each "
                            "need {}",
                            all.size(), size(), mine.size(),
                            mine.size() * static_cast<std::size_t>(size())));
  const auto parts = state_->exchange(fmt::format("all_gather({} bytes)", mine.size()),
                                      Bytes(mine.begin(), mine.end()), patience);
  auto to = all.begin();
  for (const Contribution& part : parts) {
    if (part.data.size() != mine.size())
      throw Error(Errc::protocol, "all_gather: a rank sent another number of bytes");
    to = std::copy(part.data.begin(), part.data.end(), to);
  }
}

}  // namespace iridium
