#include "collectives/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "base/text.h"
#include "collectives/call.h"
#include "collectives/reference.h"
#include "support/links.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

/// Elements behind an array that must stay as they are.
constexpr std::size_t guard = 16;
constexpr unsigned char poison_byte = 0xa5;
constexpr unsigned char spoilt_byte = 0x77;

template <class T>
T filled(unsigned char byte) {
  T element;
  std::memset(static_cast<void*>(&element), byte, sizeof(T));
  return element;
}

template <class T>
T of_bits(std::uint64_t bits) {
  T element;
  std::memcpy(static_cast<void*>(&element), &bits, sizeof(T));
  return element;
}

std::uint64_t drawn_bits(std::uint64_t seed, int place, std::size_t index) {
  std::uint64_t bits = (seed * 64 + static_cast<std::uint64_t>(place)) * 0x9e3779b97f4a7c15u +
                       index * 0xd1342543de82ef95u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

/// What the member at `place` has at `index` of its input.
template <class T>
T element(const Call& call, std::uint64_t seed, int place, std::size_t index) {
  if constexpr (FloatNumber<T>) {
    if (call.values == Values::special) {
      static const auto numbers = special_numbers<T>();
      const std::size_t divisor = place % 3 == 0 ? 1 : place % 3 == 1 ? 10 : 100;
      return numbers[index / divisor % 10];
    }
    if (reduces(call.collective))
      return convert<T>(static_cast<double>(drawn_bits(seed, place, index) >> 11) * 0x1p-52 - 1);
  }
  return of_bits<T>(drawn_bits(seed, place, index));
}

/// A call as seen by one member.
struct Member {
  Call call;
  int members;
  int place;

  std::size_t parts() const { return static_cast<std::size_t>(members); }
  std::size_t in_count() const {
    const bool has_parts =
        call.collective == Collective::reduce_scatter || call.collective == Collective::all_to_all;
    return call.count * (has_parts ? parts() : 1);
  }
  std::size_t out_count() const {
    const bool has_parts =
        call.collective == Collective::all_gather || call.collective == Collective::all_to_all;
    return call.count * (has_parts ? parts() : 1);
  }
  std::size_t mine() const { return static_cast<std::size_t>(place) * call.count; }
  /// Where in their arrays they begin.
  std::size_t in_first() const {
    const bool inside = call.overlap == Overlap::own && call.collective == Collective::all_gather;
    return call.in_shift + (inside ? mine() : 0);
  }
  std::size_t out_first() const {
    const bool inside =
        call.overlap == Overlap::own && call.collective == Collective::reduce_scatter;
    return call.out_shift + (inside ? mine() : 0);
  }
  /// Elements that an array for this call has, at any place.
  std::size_t array_count() const {
    return std::max(in_count(), out_count()) + std::max(call.in_shift, call.out_shift) + guard;
  }
  bool reads() const { return call.collective != Collective::broadcast || place == call.root; }

  /// The first of the members whose elements become output `i`; where it reduces, the others come
  /// behind it, in order and around.
  std::size_t first_source(std::size_t i) const {
    if (call.collective == Collective::broadcast) return static_cast<std::size_t>(call.root);
    if (!reduces(call.collective)) return i / call.count;
    if (call.algorithm != "ring") return 0;
    // The member behind the shard's owner begins; shards begin at multiples of 16 bytes.
    const std::size_t vector = 16 / size_of(call.type);
    const std::size_t even = (call.count + parts() - 1) / parts();
    const std::size_t owner = i / ((even + vector - 1) / vector * vector);
    return (owner + 1) % parts();
  }
  /// The index at which they have it.
  std::size_t source_index(std::size_t i) const {
    switch (call.collective) {
      case Collective::reduce_scatter:
        return mine() + i;
      case Collective::all_gather:
        return i % call.count;
      case Collective::all_to_all:
        return mine() + i % call.count;
      default:
        return i;
    }
  }
};

/// A member's arrays before and after a call.
template <class T>
struct Snapshot {
  std::uint64_t seed = 0;
  std::vector<T> before[2];  ///< where `out` is not elsewhere, there is no second one
  std::vector<T> after[2];
};

/// Two arrays, what was drawn for them, and what must come out: many calls share that.
template <class T>
class Arrays {
 public:
  Arrays(Context& context, std::size_t elements)
      : in(context.allocate<T>(elements)), out(context.allocate<T>(elements)) {}

  /// The first `count` elements of the member at `place`, at least.
  const std::vector<T>& inputs(const Call& call, std::uint64_t seed, int place, std::size_t count) {
    std::vector<T>& elements = inputs_[{reduces(call.collective), call.values, seed, place}];
    for (std::size_t i = elements.size(); i < count; ++i)
      elements.push_back(element<T>(call, seed, place, i));
    return elements;
  }

  /// The reductions of the members' first `count` elements, at least, where the members come in
  /// order and around, from place `first` on.
  const std::vector<T>& reductions(const Call& call, std::uint64_t seed, std::size_t members,
                                   std::size_t first, std::size_t count) {
    std::vector<T>& results = results_[{call.op, call.values, seed, members, first}];
    if (results.size() >= count) return results;
    std::vector<const T*> sources;
    for (std::size_t k = 0; k < members; ++k)
      sources.push_back(inputs(call, seed, static_cast<int>((first + k) % members), count).data());
    std::vector<T> elements(members);
    for (std::size_t i = results.size(); i < count; ++i) {
      std::ranges::transform(sources, elements.begin(), [&](const T* each) { return each[i]; });
      results.push_back(reduced<T>(call.op, elements));
      if constexpr (FloatNumber<T>)
        if (call.values == Values::drawn && !is_near<T>(call.op, elements, results.back()))
          throw std::logic_error("the reductions in plain code do not agree with fp64");
    }
    return results;
  }

  void forget_if_many() {
    constexpr std::size_t many = 100;
    if (inputs_.size() < many) return;
    inputs_.clear();
    results_.clear();
  }

  const SymmetricArray<T> in;
  const SymmetricArray<T> out;

 private:
  std::map<std::tuple<bool, Values, std::uint64_t, int>, std::vector<T>> inputs_;
  std::map<std::tuple<ReduceOp, Values, std::uint64_t, std::size_t, std::size_t>, std::vector<T>>
      results_;
};

template <class T>
class TypedRun final : public CallRun {
 public:
  TypedRun(const Team& team, const Call& call, std::shared_ptr<Arrays<T>> arrays)
      : team_(team),
        member_{call, team.size(), team.is_member() ? team.rank() : 0},
        arrays_(std::move(arrays)) {}

  void set(StreamRef& stream, std::uint64_t seed) override {
    Snapshot<T>& now = snapshots_.emplace_back();
    now.seed = seed;
    for (int i = 0; i < areas(); ++i)
      now.before[i].assign(member_.array_count(), filled<T>(poison_byte));
    const std::vector<T>& inputs = arrays_->inputs(call(), seed, member_.place, member_.in_count());
    std::copy_n(inputs.begin(), member_.in_count(),
                now.before[0].begin() + static_cast<std::ptrdiff_t>(member_.in_first()));
    for (int i = 0; i < areas(); ++i)
      stream.copy(area(i).data(), now.before[i].data(), now.before[i].size() * sizeof(T));
  }

  void launch(StreamRef& stream) override {
    if (call().symmetric)
      submit(stream, area(out_area()), area(0));
    else
      submit(stream, area(out_area()).data() + member_.out_first(), plain_input());
  }

  void fetch(StreamRef& stream) override {
    Snapshot<T>& now = snapshots_.back();
    for (int i = 0; i < areas(); ++i) {
      now.after[i].resize(now.before[i].size());
      stream.copy(now.after[i].data(), area(i).data(), now.after[i].size() * sizeof(T));
    }
  }

  void spoil(StreamRef& stream) override {
    stream.fill(area(0).data() + member_.in_first(), spoilt_byte, member_.in_count() * sizeof(T));
  }

  void check() override {
    for (const Snapshot<T>& each : snapshots_) check(each);
    snapshots_.clear();
    arrays_->forget_if_many();
  }

  std::uint64_t digest() const override { return digest_; }

 private:
  const Call& call() const { return member_.call; }
  int areas() const { return call().overlap == Overlap::none ? 2 : 1; }
  int out_area() const { return areas() - 1; }
  const SymmetricArray<T>& area(int i) const { return i == 0 ? arrays_->in : arrays_->out; }
  const T* plain_input() const {
    const bool needed = member_.reads() || call().overlap != Overlap::none;
    return needed ? area(0).data() + member_.in_first() : nullptr;
  }

  /// With arrays or with pointers.
  template <class Out, class In>
  void submit(StreamRef& stream, const Out& out, const In& in) {
    const Call& c = call();
    switch (c.collective) {
      case Collective::all_reduce:
        return all_reduce(stream, team_, out, in, c.count,
                          {.op = c.op,
                           .algorithm = parse_all_reduce_algorithm(c.algorithm),
                           .blocks = c.blocks,
                           .tile = c.tile});
      case Collective::reduce_scatter:
        return reduce_scatter(stream, team_, out, in, c.count,
                              {.op = c.op,
                               .algorithm = parse_reduce_scatter_algorithm(c.algorithm),
                               .blocks = c.blocks,
                               .tile = c.tile});
      case Collective::all_gather:
        return all_gather(stream, team_, out, in, c.count,
                          {.algorithm = parse_all_gather_algorithm(c.algorithm),
                           .blocks = c.blocks,
                           .tile = c.tile});
      case Collective::all_to_all:
        return all_to_all(stream, team_, out, in, c.count, {.blocks = c.blocks});
      case Collective::broadcast:
        return broadcast(stream, team_, out, in, c.count, c.root,
                         {.algorithm = parse_broadcast_algorithm(c.algorithm), .blocks = c.blocks});
    }
  }

  bool is_right(std::uint64_t seed, std::size_t i, T found) {
    const std::size_t index = member_.source_index(i);
    const std::size_t first = member_.first_source(i);
    if constexpr (FloatNumber<T>)
      if (call().algorithm == "atomic") return is_atomic_sum(seed, index, found);
    const T*& expected = expected_[first];
    if (expected == nullptr) expected = expectation(seed, first).data();
    return reduces(call().collective) ? is_same(call().op, expected[index], found)
                                      : same_bits(found, expected[index]);
  }

  /// What outputs with this first source are to be, by their source's index.
  const std::vector<T>& expectation(std::uint64_t seed, std::size_t first) {
    return reduces(call().collective)
               ? arrays_->reductions(call(), seed, member_.parts(), first, member_.in_count())
               : arrays_->inputs(call(), seed, static_cast<int>(first), member_.in_count());
  }

  bool is_atomic_sum(std::uint64_t seed, std::size_t index, T found) {
    std::vector<T> elements;
    for (int place = 0; place < member_.members; ++place)
      elements.push_back(arrays_->inputs(call(), seed, place, member_.in_count())[index]);
    return is_sum_in_any_order<T>(call().op, elements, found);
  }

  /// Empty when element `at` of an array is what it should be; else what it is.
  std::string_view fault(const Snapshot<T>& snapshot, int area, std::size_t at) {
    const T& found = snapshot.after[area][at];
    const std::size_t output = at - member_.out_first();
    if (area == out_area() && output < member_.out_count())
      return is_right(snapshot.seed, output, found) ? "" : "output";
    const bool is_input = area == 0 && at - member_.in_first() < member_.in_count();
    if (same_bits(found, snapshot.before[area][at]) ||
        (is_input && same_bits(found, filled<T>(spoilt_byte))))
      return "";
    return is_input ? "input" : "what lies around the arrays";
  }

  void check(const Snapshot<T>& snapshot) {
    require(!snapshot.after[0].empty(), "what is checked was fetched");
    expected_.assign(member_.parts(), nullptr);
    for (int area = 0; area < areas(); ++area)
      for (std::size_t at = 0; at < snapshot.after[area].size(); ++at) {
        const std::string_view what = fault(snapshot, area, at);
        if (what.empty()) continue;
        require(false, fmt::format("{}, seed {}: {} is wrong, element {} of array {} is {}",
                                   describe(call()), snapshot.seed, what, at, area,
                                   +static_cast<Accumulator<T>>(snapshot.after[area][at])));
      }
    const std::vector<T>& outputs = snapshot.after[out_area()];
    digest_ = hash_text({reinterpret_cast<const char*>(outputs.data() + member_.out_first()),
                         member_.out_count() * sizeof(T)});
  }

  Team team_;
  Member member_;
  std::shared_ptr<Arrays<T>> arrays_;
  std::deque<Snapshot<T>> snapshots_;
  std::vector<const T*> expected_;  ///< by first source, while a check is on
  std::uint64_t digest_ = 0;
};

/// A call that the team's link cannot do: every launch must be refused, and there is nothing else.
class RefusedRun final : public CallRun {
 public:
  explicit RefusedRun(std::unique_ptr<CallRun> run) : run_(std::move(run)) {}

  void set(StreamRef&, std::uint64_t) override {}
  void launch(StreamRef& stream) override {
    require_error(Errc::unsupported, {}, [&] { run_->launch(stream); });
  }
  void fetch(StreamRef&) override {}
  void spoil(StreamRef&) override {}
  void check() override {}
  std::uint64_t digest() const override { return 0; }

 private:
  std::unique_ptr<CallRun> run_;
};

}  // namespace

std::string describe(const Call& call) {
  static constexpr std::array names = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                       "broadcast"};
  static constexpr std::array overlaps = {"", ", in place", ", in its part"};
  return fmt::format("{} {} {} {} {} of {} (blocks {}, tile {}, root {}, shifts {} {}{}{})",
                     call.symmetric ? "symmetric" : "plain", call.algorithm,
                     names[static_cast<std::size_t>(call.collective)], name(call.op), call.count,
                     name(call.type), call.blocks, call.tile, call.root, call.in_shift,
                     call.out_shift, overlaps[static_cast<std::size_t>(call.overlap)],
                     call.values == Values::special ? ", special values" : "");
}

std::vector<std::string> algorithms_of(Collective collective) {
  std::vector<std::string> names;
  const auto add = [&](const auto& algorithms) {
    for (const auto algorithm : algorithms) names.emplace_back(name(algorithm));
  };
  switch (collective) {
    case Collective::all_reduce:
      add(all_reduce_algorithms());
      break;
    case Collective::reduce_scatter:
      add(reduce_scatter_algorithms());
      break;
    case Collective::all_gather:
      add(all_gather_algorithms());
      break;
    case Collective::all_to_all:
      names = {"automatic"};
      break;
    case Collective::broadcast:
      add(broadcast_algorithms());
      break;
  }
  return names;
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

bool knows(const std::string& algorithm, ReduceOp op) {
  return algorithm != "atomic" || op == ReduceOp::sum || op == ReduceOp::avg;
}

bool is_refused(const Call& call, const Team& team) {
  return call.algorithm == "atomic" && !has_native_atomics(team);
}

std::vector<Call> every_form(const Call& call) {
  std::vector<Call> forms;
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::all_to_all, Collective::broadcast})
    for (const std::string& algorithm : algorithms_of(collective))
      for (const bool symmetric : {false, true}) {
        Call form = call;
        form.collective = collective;
        form.algorithm = algorithm;
        form.symmetric = symmetric;
        forms.push_back(form);
      }
  return forms;
}

void CallRun::run(StreamRef& stream, std::uint64_t seed) {
  set(stream, seed);
  launch(stream);
  fetch(stream);
}

std::vector<std::unique_ptr<CallRun>> make_runs(Context& context, const Team& team,
                                                const std::vector<Call>& calls) {
  std::vector<std::unique_ptr<CallRun>> runs;
  with_type(calls.front().type, [&]<class T>(std::type_identity<T>) {
    std::size_t elements = 0;
    for (const Call& call : calls)
      elements = std::max(elements, Member{call, team.size(), 0}.array_count());
    const auto arrays = std::make_shared<Arrays<T>>(context, elements);
    for (const Call& call : calls) {
      require(call.type == calls.front().type, "calls that share arrays have one type");
      runs.push_back(std::make_unique<TypedRun<T>>(team, call, arrays));
      if (is_refused(call, team))
        runs.back() = std::make_unique<RefusedRun>(std::move(runs.back()));
    }
  });
  return runs;
}

std::unique_ptr<CallRun> make_run(Context& context, const Team& team, const Call& call) {
  return std::move(make_runs(context, team, {call}).front());
}

void run_all(Context& context, const Team& team, const std::vector<Call>& calls) {
  constexpr std::size_t batch = 16;
  constexpr std::size_t seeds = 3;
  const auto runs = make_runs(context, team, calls);
  if (!team.is_member()) return;
  Stream stream = context.make_stream();
  for (std::size_t first = 0; first < runs.size(); first += batch) {
    const std::size_t last = std::min(first + batch, runs.size());
    for (std::size_t i = first; i < last; ++i) runs[i]->run(stream, i % seeds);
    stream.synchronize();
    team.check();
    for (std::size_t i = first; i < last; ++i) runs[i]->check();
  }
}

}  // namespace iridium::test
