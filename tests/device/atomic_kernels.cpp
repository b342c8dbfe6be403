#include "device/atomic_kernels.h"

#include "iridium/device/lane.h"

namespace iridium::test {
namespace {

template <class T>
struct Accesses {
  Lane lane;
  const AtomicCase<T>* accesses;
  std::size_t count;
  T* words;
  T* results;
  int place;

  IR_DEVICE void operator()(BlockOf<128> block) const {
    const int thread = block.index() * block.thread_count() + block.thread();
    const int threads = block.count() * block.thread_count();
    for (std::size_t i = static_cast<std::size_t>(thread); i < count;
         i += static_cast<std::size_t>(threads))
      results[i] = access(block, accesses[i], lane.peers().at(words + i, place));
  }
};

/// function(number of the item), for this thread's items.
template <class T, class Function>
IR_DEVICE void for_items(BlockOf<64> block, const Contention<T>& work, Function function) {
  for (auto i = static_cast<std::uint32_t>(block.thread()); i < work.items;
       i += static_cast<std::uint32_t>(block.thread_count())) {
    function(work.first_item + static_cast<std::uint64_t>(block.index()) * work.items + i);
    block.pause(false);
  }
}

/// A negative ticket is out of range, too.
template <Scope S>
IR_DEVICE void draw(BlockOf<64> block, std::uint32_t* seen, std::uint64_t limit,
                    std::uint64_t ticket, ScopeTag<S> scope) {
  atomic_add(block, seen + (ticket < limit ? ticket : limit), 1u, order::relaxed, scope);
}

template <class T>
struct Contend {
  Lane lane;
  Contention<T> work;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    with_scope(work.scope, [&](auto scope) {
      for_items(block, work, [&](std::uint64_t item) { update(block, item, scope); });
    });
  }

 private:
  template <Scope S>
  IR_DEVICE void update(BlockOf<64> block, std::uint64_t item, ScopeTag<S> scope) const {
    const auto part = static_cast<std::size_t>(S == Scope::block ? block.index() : 0);
    T* const words = lane.peers().at(work.words + part * contended_words, work.place);
    std::uint32_t* const seen = lane.peers().at(work.seen + part * (work.limit + 1), work.place);
    const auto number = static_cast<T>(item);
    const auto mark = static_cast<T>(mark_of(item));
    const auto bit = static_cast<T>(std::uint64_t{1} << item % (sizeof(T) * 8));
    atomic_add(block, words + added, number, order::relaxed, scope);
    atomic_sub(block, words + subtracted, number, order::relaxed, scope);
    atomic_or(block, words + set, bit, order::relaxed, scope);
    atomic_and(block, words + cleared, static_cast<T>(~bit), order::relaxed, scope);
    atomic_xor(block, words + flipped, mark, order::relaxed, scope);
    atomic_min(block, words + smallest, mark, order::relaxed, scope);
    atomic_max(block, words + largest, mark, order::relaxed, scope);
    increment(block, words + incremented, scope);
    const T before = atomic_exchange(block, words + latest, mark, order::acq_rel, scope);
    atomic_add(block, words + replaced, before, order::acq_rel, scope);
    const T ticket = atomic_add(block, words + tickets, static_cast<T>(1), order::acq_rel, scope);
    draw(block, seen, work.limit, static_cast<std::uint64_t>(ticket), scope);
  }

  template <Scope S>
  IR_DEVICE void increment(BlockOf<64> block, T* word, ScopeTag<S> scope) const {
    T seen = atomic_load(block, word, order::relaxed, scope);
    for (;;) {
      // Between the look and the exchange, somebody else may come.
      block.pause(false);
      const T found = atomic_compare_exchange(block, word, seen, static_cast<T>(seen + 1),
                                              order::acq_rel, scope);
      if (found == seen) return;
      seen = found;
    }
  }
};

template <class T>
struct Sum {
  Lane lane;
  Contention<T> work;

  IR_DEVICE void operator()(BlockOf<64> block) const {
    T* const numbers = lane.peers().at(work.words, work.place);
    std::uint32_t* const seen = lane.peers().at(work.seen, work.place);
    for_items(block, work, [&](std::uint64_t) {
      for (std::size_t i = 1; i < summed_numbers; ++i)
        atomic_add(block, numbers + i, convert<T>(i % 2 == 0 ? 1.0f : -1.0f), order::relaxed);
      const T before = atomic_add(block, numbers, convert<T>(1.0f));
      draw(block, seen, work.limit, convert<std::uint64_t>(before), scope::system);
    });
  }
};

/// Which operations a round's sender and receiver use. The enumerators are the numbers: a load
/// cannot send, and for a store, which cannot receive, stands a compare_exchange that fails.
struct MessageRound {
  static constexpr std::uint32_t calls = 11;
  static constexpr std::uint32_t repetitions = 3;
  static constexpr std::uint32_t count = calls * calls * repetitions;
  static constexpr std::uint32_t raised = 1;

  std::uint32_t number;

  IR_DEVICE AtomicCall sender() const { return static_cast<AtomicCall>(number % calls); }
  IR_DEVICE AtomicCall receiver() const { return static_cast<AtomicCall>(number / calls % calls); }
  IR_DEVICE bool exists() const { return sender() != AtomicCall::load; }
  IR_DEVICE bool orders_both() const { return number / (calls * calls) == 1; }

  /// What the flag holds before: what the sender's operation makes `raised`.
  IR_DEVICE std::uint32_t idle() const {
    return sender() == AtomicCall::bit_and || sender() == AtomicCall::minimum ? 3 : 0;
  }
  IR_DEVICE AtomicCase<std::uint32_t> send() const {
    AtomicCase<std::uint32_t> access;
    access.call = sender();
    access.order =
        orders_both() && access.call != AtomicCall::store ? Order::acq_rel : Order::release;
    access.operand = access.call == AtomicCall::subtract ? 0u - raised : raised;
    access.expected = idle();
    return access;
  }
  IR_DEVICE AtomicCase<std::uint32_t> receive() const {
    AtomicCase<std::uint32_t> access;
    access.call = receiver();
    access.order =
        orders_both() && access.call != AtomicCall::load ? Order::acq_rel : Order::acquire;
    access.expected = raised;
    if (access.call == AtomicCall::store) {
      access.call = AtomicCall::compare_exchange;
      access.expected = 7;
    }
    if (access.call == AtomicCall::bit_and || access.call == AtomicCall::minimum)
      access.operand = ~0u;
    if (access.call == AtomicCall::exchange || access.call == AtomicCall::compare_exchange)
      access.operand = idle();
    return access;
  }
};

struct PassMessages {
  Lane lane;
  Messages work;

  IR_DEVICE void operator()(BlockOf<32> block) const {
    if (!block.is_leader()) return;
    std::uint32_t wrong = 0;
    for (std::uint32_t number = 0; number < MessageRound::count && wrong < expired; ++number) {
      const MessageRound round = {number};
      if (!round.exists()) continue;
      wrong += lane.peers().rank() == 0 ? send(block, round) : receive(block, round);
    }
    *work.wrong = wrong;
  }

 private:
  static constexpr std::uint32_t expired = Messages::expired;

  /// Calls `arrived` until it returns true, for some seconds.
  template <class Arrived>
  IR_DEVICE static bool wait_for(BlockOf<32> block, Arrived arrived) {
    const std::uint64_t start = block.nanoseconds();
    while (!arrived()) {
      if (block.nanoseconds() - start > 20'000'000'000) return false;
      block.pause(true);
    }
    return true;
  }

  IR_DEVICE std::uint32_t send(BlockOf<32> block, MessageRound round) const {
    const Peers& peers = lane.peers();
    // The receiver answers the round before when it has read it, and made the flag idle.
    const bool ready =
        wait_for(block, [&] { return atomic_load(block, work.answer) == round.number; });
    if (!ready) return expired;
    std::uint32_t* const data = peers.at(work.data, 1);
    for (std::uint32_t i = 0; i < Messages::words; ++i) data[i] = round.number * 1000 + i;
    access(block, round.send(), peers.at(work.flag, 1));
    return 0;
  }

  IR_DEVICE std::uint32_t receive(BlockOf<32> block, MessageRound round) const {
    atomic_store(block, work.flag, round.idle());
    atomic_store(block, lane.peers().at(work.answer, 0), round.number);
    const bool arrived = wait_for(
        block, [&] { return access(block, round.receive(), work.flag) == MessageRound::raised; });
    if (!arrived) return expired;
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < Messages::words; ++i)
      wrong += work.data[i] != round.number * 1000 + i ? 1 : 0;
    return wrong;
  }
};

}  // namespace

template <class T>
void run_accesses(const Context& context, StreamRef& stream, const Lane& lane,
                  const AtomicCase<T>* accesses, std::size_t count, T* words, T* results,
                  int place) {
  context.launch(stream, 3, Accesses<T>{lane, accesses, count, words, results, place});
}

template <class T>
void run_contention(const Context& context, StreamRef& stream, const Lane& lane,
                    const Contention<T>& work) {
  context.launch(stream, work.blocks, Contend<T>{lane, work});
}

template <class T>
void run_sums(const Context& context, StreamRef& stream, const Lane& lane,
              const Contention<T>& work) {
  context.launch(stream, work.blocks, Sum<T>{lane, work});
}

void run_messages(const Context& context, StreamRef& stream, const Lane& lane,
                  const Messages& work) {
  context.launch(stream, Grid{.blocks = 1, .resident = true}, PassMessages{lane, work});
}

void prepare_messages(const Context& context) {
  context.prepare<PassMessages>();
}

template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<std::int32_t>*,
                           std::size_t, std::int32_t*, std::int32_t*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&,
                           const AtomicCase<std::uint32_t>*, std::size_t, std::uint32_t*,
                           std::uint32_t*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<std::int64_t>*,
                           std::size_t, std::int64_t*, std::int64_t*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&,
                           const AtomicCase<std::uint64_t>*, std::size_t, std::uint64_t*,
                           std::uint64_t*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<float>*,
                           std::size_t, float*, float*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<double>*,
                           std::size_t, double*, double*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<fp16>*,
                           std::size_t, fp16*, fp16*, int);
template void run_accesses(const Context&, StreamRef&, const Lane&, const AtomicCase<bf16>*,
                           std::size_t, bf16*, bf16*, int);
template void run_contention(const Context&, StreamRef&, const Lane&,
                             const Contention<std::int32_t>&);
template void run_contention(const Context&, StreamRef&, const Lane&,
                             const Contention<std::uint32_t>&);
template void run_contention(const Context&, StreamRef&, const Lane&,
                             const Contention<std::int64_t>&);
template void run_contention(const Context&, StreamRef&, const Lane&,
                             const Contention<std::uint64_t>&);
template void run_sums(const Context&, StreamRef&, const Lane&, const Contention<float>&);
template void run_sums(const Context&, StreamRef&, const Lane&, const Contention<double>&);
template void run_sums(const Context&, StreamRef&, const Lane&, const Contention<fp16>&);
template void run_sums(const Context&, StreamRef&, const Lane&, const Contention<bf16>&);

}  // namespace iridium::test
