#include "runtime/context_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "base/settings.h"
#include "base/text.h"
#include "iridium/tuning.h"
#include "iridium/version.h"
#include "runtime/departure.h"
#include "runtime/find_job.h"
#include "runtime/rendezvous.h"
#include "runtime/unix_control_plane.h"

namespace iridium {
namespace {

std::chrono::milliseconds checked_timeout(const WaitLimit& limit) {
  if (limit.timeout.count() <= 0 || limit.timeout > max_timeout)
    throw Error(Errc::invalid_argument, fmt::format("{} is {} ms: expected 1 to {}", limit.option,
                                                    limit.timeout.count(), max_timeout.count()));
  return limit.timeout;
}

std::size_t rounded_heap_bytes(const ContextOptions& options, const Backend& backend) {
  const std::size_t bytes =
      options.heap_bytes ? *options.heap_bytes : heap_bytes_setting(process_environment);
  const std::size_t granularity = backend.granularity();
  if (bytes == 0)
    throw Error(Errc::invalid_argument, "ContextOptions::heap_bytes is 0: expected at least 1");
  if (bytes > std::numeric_limits<std::size_t>::max() - granularity)
    throw Error(Errc::out_of_memory,
                fmt::format("a heap of {} is larger than any memory", format_bytes(bytes)));
  return (bytes + granularity - 1) / granularity * granularity;
}

int checked_lanes_at_once(const ContextOptions& options) {
  const int lanes =
      options.lanes_at_once ? *options.lanes_at_once : lanes_at_once_setting(process_environment);
  if (lanes < 1 || lanes > max_lanes_at_once)
    throw Error(Errc::invalid_argument,
                fmt::format("ContextOptions::lanes_at_once is {}; expected 1 to {}", lanes,
                            max_lanes_at_once));
  return lanes;
}

BackendRequest backend_request(const Job& job, const ContextOptions& options) {
  BackendRequest request;
  request.rank = job.rank;
  request.local_rank = job.local_rank;
  request.local_rank_variable = job.local_rank_variable;
  request.kind = options.backend ? options.backend : backend_setting(process_environment);
  // Threads are ranks on the host backend only.
  if (!request.kind && job.launcher == "threads") request.kind = BackendKind::host;
  request.device = options.device ? options.device : device_setting(process_environment);
  request.placement =
      options.placement ? *options.placement : placement_setting(process_environment);
  request.link = options.link ? options.link : link_setting(process_environment);
  if (options.link == Link::none)
    throw Error(Errc::invalid_argument, "ContextOptions::link is none: ranks need one");
  request.split_blocks =
      options.split_blocks ? *options.split_blocks : split_blocks_setting(process_environment);
  request.schedule_seed =
      options.schedule_seed ? options.schedule_seed : schedule_seed_setting(process_environment);
  return request;
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

ContextCore::ContextCore(const Job& job, const ContextOptions& options)
    : rank_(job.rank),
      size_(job.size),
      timeout_(checked_timeout(
          call_limit(options.timeout ? *options.timeout : timeout_setting(process_environment)))),
      construction_timeout_(checked_timeout(iridium::construction_limit(
          options.construction_timeout ? *options.construction_timeout
                                       : construction_timeout_setting(process_environment)))),
      lanes_at_once_(checked_lanes_at_once(options)),
      checked_(options.checked ? *options.checked : checked_setting(process_environment)) {
  check_job(job);
  on_step_ = options.on_step;
  everyone_.name = fmt::format("context '{}'", options.name);
  everyone_.members = all_ranks(size_);
  if (size_ == 1) {
    mailbox_ = std::make_unique<Mailbox>(0, 1, nullptr);
    set_up(job, options);
    map_segments(random_id());
    return;
  }
  // First, so that a rank that cannot set itself up has somebody to tell.
  Rendezvous rendezvous = meet(job, options.name, construction_limit(),
                               [this](std::string_view step) { announce(step); });
  mailbox_ = std::make_unique<Mailbox>(rank_, size_,
                                       make_unix_control_plane(rank_, std::move(rendezvous.links)),
                                       rendezvous.context_id);
  fail_together([&] {
    set_up(job, options);
    map_segments(rendezvous.context_id);
  });
}

void ContextCore::set_up(const Job& job, const ContextOptions& options) {
  backend_ = make_backend(backend_request(job, options));
  heap_bytes_ = rounded_heap_bytes(options, *backend_);
  backend_->check_heap(heap_bytes_, size_);
}

void ContextCore::announce(std::string_view step) const {
  log(LogLevel::debug, rank_, "step {}", step);
  if (on_step_) on_step_(step);
}

void ContextCore::fail_together(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    const Fault fault = to_fault(error, rank_);
    mailbox_->fail(everyone_, fault);
    throw fault.error();
  }
}

void ContextCore::succeed_together(const std::string& call, const std::function<void()>& body) {
  Bytes fault;  // empty when there is none
  try {
    body();
  } catch (const std::exception& error) {
    fault = encode(to_fault(error, rank_));
  }
  for (const Contribution& part : exchange_all(call, {std::move(fault), {}}, construction_limit()))
    if (!part.data.empty()) throw decode_fault(part.data).error();
}

void ContextCore::map_segments(std::uint64_t context_id) {
  announce("segments");
  agree("context: terms", {}, {});
  std::vector<std::string> places;
  for (const Contribution& part :
       exchange_all("context: places", {PayloadWriter().text(backend_->place()).take(), {}},
                    construction_limit()))
    places.push_back(PayloadReader(part.data).text());
  backend_->check_peers(rank_, places);
  auto segments = exchange_all("context: segments", {{}, backend_->create_segment(heap_bytes_)},
                               construction_limit());

  announce("window");
  auto window = backend_->open_window(context_id, size_, heap_bytes_);
  for (int rank = 0; rank < size_; ++rank) {
    const FileDescriptor& segment = segments[static_cast<std::size_t>(rank)].descriptor;
    if (!segment) throw Error(Errc::protocol, fmt::format("rank {} sent no segment", rank), {rank});
    window->map(rank, segment);
  }
  heap_ = own_by_process(
      std::make_unique<Heap>(std::move(window), rank_, size_, heap_bytes_, streams_));
  statuses_ = std::make_shared<StatusPool>(*backend_, heap_, streams_);
}

int ContextCore::lanes_that_run(bool exclusive) const {
  // Room to run is there for a second one in any case: without it two teams would stop each other.
  return exclusive ? 1 : std::max(2, lanes_at_once_);
}

TeamTerms ContextCore::terms(const std::vector<int>& members, const TeamOptions& options) const {
  Link worst = Link::shared;
  if (std::ranges::find(members, rank_) != members.end())
    for (const int member : members) worst = std::max(worst, backend_->link(member));
  const bool beside_compute = options.beside_compute ? *options.beside_compute
                                                     : beside_compute_setting(process_environment);
  const WaitingGrids waiting_grids = {.resident = lanes_that_run(options.exclusive),
                                      .beside_compute = !beside_compute     ? 0
                                                        : options.exclusive ? 1
                                                                            : lanes_at_once_};
  return {.version = version(),
          .backend = std::string(name(backend_->kind())),
          .placement = std::string(name(backend_->placement())),
          .heap_bytes = heap_bytes_,
          .scratch_bytes = options.scratch_bytes,
          .packet_bytes = options.packet_bytes,
          .tuning_table = iridium::tuning_table().hash(),
          .checked = checked_,
          .lanes_at_once = lanes_at_once_,
          .beside_compute = beside_compute,
          .exclusive = options.exclusive,
          .timeout_ms = timeout_.count(),
          .device = backend_->device_name(),
          .max_blocks = std::min(options.max_blocks, backend_->max_blocks(waiting_grids)),
          .link = worst};
}

TeamTerms ContextCore::agree(const std::string& call, const std::vector<int>& members,
                             const TeamOptions& options) {
  std::vector<TeamTerms> all;
  for (const Contribution& part :
       exchange_all(call, {encode(terms(members, options)), {}}, construction_limit()))
    all.push_back(decode_terms(part.data));
  return reconcile(ranks(), all);
}

std::vector<Contribution> ContextCore::exchange(Channel& channel, const std::string& call,
                                                Contribution mine, int patience) {
  return mailbox_->exchange(channel, call, std::move(mine), call_limit(patience * timeout_));
}

std::vector<Contribution> ContextCore::exchange_all(const std::string& call, Contribution mine,
                                                    const WaitLimit& limit) {
  return mailbox_->exchange(everyone_, call, std::move(mine), limit);
}

void ContextCore::adopt(const std::shared_ptr<detail::StreamImpl>& stream) const {
  require_own_process();
  if (streams_->knows(*stream)) return;
  if (const std::string place = backend_->stream_place(); stream->place() != place)
    throw Error(
        Errc::invalid_argument,
        fmt::format("a stream on {} cannot run work of a context on {}", stream->place(), place));
  streams_->add(stream);
}

void ContextCore::launch(detail::StreamImpl& stream, Grid grid, const detail::KernelEntry& entry,
                         const void* kernel) const {
  if (grid.blocks < 1)
    throw Error(
        Errc::invalid_argument,
        fmt::format("launch of {} with {} blocks: expected at least 1", entry.name, grid.blocks));
  if (const std::string objection = backend_->object_to_kernel(entry); !objection.empty())
    throw Error(Errc::unsupported, objection);
  if (grid.blocks % entry.cluster != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("launch of {} with {} blocks: expected a multiple of {}, its cluster",
                            entry.name, grid.blocks, entry.cluster));
  if (grid.resident) backend_->check_resident(entry, grid.blocks, lanes_that_run(grid.exclusive));
  stream.launch_kernel(entry, kernel, grid.blocks);
}

void ContextCore::refuse_capture(const std::string& call) const {
  if (streams_->any_capturing())
    throw Error(Errc::capture_unsupported, call +
                                               " cannot be part of a capture, and a stream of this "
                                               "context is capturing; the capture goes on");
}

void ContextCore::leave() noexcept {
  if (size_ == 1 || !process_.is_here()) return mailbox_->shut_down();
  QueuedWork queued = {streams_, std::nullopt};
  try {
    if (queued.is_done()) return mailbox_->shut_down();
  } catch (const std::exception& error) {
    // Where streams cannot be marked, nothing runs any more either.
    log(LogLevel::debug, rank_, "the end of the queued work is unknown: {}", error.what());
    return mailbox_->shut_down();
  }
  if (auto departure = mailbox_->leave())
    say_goodbye_after(std::move(departure), std::move(queued));
}

std::shared_ptr<detail::Allocation> ContextCore::allocate(std::size_t bytes, std::size_t alignment,
                                                          const WaitLimit& limit) {
  const std::string call = fmt::format("allocate({} bytes, alignment {})", bytes, alignment);
  refuse_capture(call);
  if (alignment > backend_->granularity())
    throw Error(Errc::invalid_argument, fmt::format("{}: the alignment is over the limit of {}",
                                                    call, backend_->granularity()));
  // Half of the timeout, so that ranks with nothing to wait for are still there afterwards.
  const WaitLimit half = {limit.timeout / 2, limit.option, limit.variable};
  // From when all ranks are here: some may have come long after this one.
  std::optional<HostWait> own_frees;
  bool gave_up = false;
  while (true) {
    const auto parts = exchange_all(call, {heap_->report(gave_up), {}}, limit);
    std::vector<std::span<const std::byte>> reports;
    for (const Contribution& part : parts) reports.emplace_back(part.data);
    const bool more_frees = heap_->apply(reports);
    if (auto allocation = heap_->allocate(bytes, alignment)) return allocation;
    if (const auto stuck = Heap::gave_up(reports); !stuck.empty())
      throw Error(Errc::timeout,
                  fmt::format("{}: the work on arrays freed on {} did not end within {}, half of "
                              "the limit; {}{}",
                              call, list_ranks(stuck), format_seconds(half.timeout),
                              heap_->describe_room(bytes), advice(limit)),
                  stuck);
    if (!more_frees)
      throw Error(Errc::out_of_memory, fmt::format("{}: {}", call, heap_->describe_room(bytes)));
    // Some rank has freed arrays that its streams still use. All ranks know, so all try again.
    if (!own_frees) own_frees.emplace(rank_, half);
    gave_up = !wait_for_own_frees(call, *own_frees);
  }
}

bool ContextCore::wait_for_own_frees(const std::string& call, HostWait& wait) const {
  // Ended by this rank's streams.
  while (!heap_->frees_are_done()) {
    if (wait.notice_is_due())
      wait.tell(fmt::format("work of rank {} on freed arrays, at {}", rank_, call));
    if (wait.deadline().expired()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace iridium
