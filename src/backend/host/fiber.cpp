#include "backend/host/fiber.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "iridium/errors.h"

// clang tells by __has_feature, which GCC 12 lacks.
#if defined(__has_feature)
#define IR_HAS_FEATURE(feature) __has_feature(feature)
#else
#define IR_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || IR_HAS_FEATURE(thread_sanitizer)
#define IR_FIBER_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__) || IR_HAS_FEATURE(address_sanitizer)
#define IR_FIBER_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace iridium {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::transfer_t;

/// What a switch is to the sanitizers: one that orders memory, one that does not, or the last one
/// from this stack.
enum class Switch { ordered, unordered, last };

/// The head of libstdc++'s and libc++abi's `__cxa_eh_globals`, laid down by the Itanium C++ ABI.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

/// One end of a switch: where it goes on, and what the sanitizers know it by.
struct Side {
  fcontext_t context = nullptr;
  void* thread_state = nullptr;
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
};

/// Goes from one side to the other; returns when that one comes back.
[[gnu::no_sanitize_thread]] void go([[maybe_unused]] Side& from, Side& to,
                                    [[maybe_unused]] Switch kind, void* data) {
#if defined(IR_FIBER_ADDRESS_SANITIZER)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(kind == Switch::last ? nullptr : &fake_stack, to.stack_bottom,
                                 to.stack_bytes);
#endif
#if defined(IR_FIBER_THREAD_SANITIZER)
  from.thread_state = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.thread_state,
                         kind == Switch::unordered ? __tsan_switch_to_fiber_no_sync : 0);
#endif
  to.context = boost::context::detail::jump_fcontext(to.context, data).fctx;
#if defined(IR_FIBER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake_stack, &to.stack_bottom, &to.stack_bytes);
#endif
}

}  // namespace

// Its fields are read and written on both sides of a switch, which ThreadSanitizer takes for two
// threads: every function that touches them between a first entry and an end is kept from it.
struct Fiber::Record {
  enum class State { finished, armed, running, suspended, ending };

  Record();
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  static void loop(transfer_t from);
  void enter(Switch kind);

  State state = State::finished;
  Function function = nullptr;
  void* argument = nullptr;
  Side inside;
  Side outside;
  ExceptionState exceptions;
  std::exception_ptr failure;
  std::size_t guard_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* mapping = nullptr;
};

Fiber::Record::Record() {
  const std::size_t bytes = guard_bytes + stack_bytes;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (address == MAP_FAILED || ::mprotect(address, guard_bytes, PROT_NONE) != 0) {
    const int code = errno;
    if (address != MAP_FAILED) ::munmap(address, bytes);
    throw Error(Errc::out_of_memory,
                fmt::format("cannot map {} bytes for a fiber: {}", bytes, std::strerror(code)));
  }
  mapping = static_cast<std::byte*>(address);
  inside.stack_bottom = mapping + guard_bytes;
  inside.stack_bytes = stack_bytes;
  inside.context =
      boost::context::detail::make_fcontext(mapping + bytes, stack_bytes, &Record::loop);
#if defined(IR_FIBER_THREAD_SANITIZER)
  inside.thread_state = __tsan_create_fiber(0);
#endif
}

Fiber::Record::~Record() {
  if (state == State::running || state == State::suspended) std::terminate();
  // Even where the loop was never entered: it is left at once.
  state = State::ending;
  enter(Switch::ordered);
#if defined(IR_FIBER_THREAD_SANITIZER)
  __tsan_destroy_fiber(inside.thread_state);
#endif
#if defined(IR_FIBER_ADDRESS_SANITIZER)
  // The loop's frame was left without a return.
  __asan_unpoison_memory_region(mapping + guard_bytes, stack_bytes);
#endif
  ::munmap(mapping, guard_bytes + stack_bytes);
}

[[gnu::no_sanitize_thread]] void Fiber::Record::loop(transfer_t from) {
  Record& record = *static_cast<Record*>(from.data);
  record.outside.context = from.fctx;
#if defined(IR_FIBER_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &record.outside.stack_bottom,
                                  &record.outside.stack_bytes);
#endif
  while (record.state != State::ending) {
    try {
      record.function(record.argument);
    } catch (...) {
      record.failure = std::current_exception();
    }
    record.state = State::finished;
    go(record.inside, record.outside, Switch::ordered, nullptr);
  }
  go(record.inside, record.outside, Switch::last, nullptr);
}

// Runs the fiber until it comes back. The thread's exception state is each side's own, so that a
// function may suspend inside a handler, and be resumed from one.
[[gnu::no_sanitize_thread]] void Fiber::Record::enter(Switch kind) {
  auto& current = *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
  const ExceptionState callers = current;
  current = exceptions;
  go(outside, inside, kind, this);
  exceptions = current;
  current = callers;
}

Fiber::Fiber() : record_(std::make_unique<Record>()) {}
Fiber::~Fiber() = default;
Fiber::Fiber(Fiber&& other) noexcept = default;
Fiber& Fiber::operator=(Fiber&& other) noexcept = default;

[[gnu::no_sanitize_thread]] void Fiber::start(Function function, void* argument) {
  if (!finished())
    throw Error(Errc::invalid_argument, "start: the fiber's last function has not ended");
  record_->function = function;
  record_->argument = argument;
  record_->state = Record::State::armed;
}

[[gnu::no_sanitize_thread]] void Fiber::resume() {
  Record& record = *record_;
  const Record::State before = record.state;
  if (before != Record::State::armed && before != Record::State::suspended)
    throw Error(Errc::invalid_argument, "resume: the fiber has no function to run");
  record.state = Record::State::running;
  record.enter(before == Record::State::armed ? Switch::ordered : Switch::unordered);
  if (record.state == Record::State::finished && record.failure)
    std::rethrow_exception(std::exchange(record.failure, nullptr));
}

[[gnu::no_sanitize_thread]] void Fiber::suspend() {
  if (record_->state != Record::State::running)
    throw Error(Errc::invalid_argument, "suspend: the fiber is not running");
  record_->state = Record::State::suspended;
  go(record_->inside, record_->outside, Switch::unordered, nullptr);
}

[[gnu::no_sanitize_thread]] bool Fiber::finished() const {
  return record_->state == Record::State::finished;
}

}  // namespace iridium
