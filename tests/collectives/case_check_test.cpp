// The cases' own checks: every registered operation's refuses one wrong element, and names it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collectives/call.h"
#include "collectives/collective_case.h"
#include "collectives/reference.h"
#include "iridium/operations.h"
#include "support/links.h"
#include "support/memory.h"
#include "support/ranks.h"
#include "support/sampling.h"

namespace iridium::test {
namespace {

/// An operation with one of its combinations of arguments.
struct Subject {
  const Operation& operation;
  Arguments arguments;

  std::string describe() const {
    std::string text = operation.name;
    for (const auto& [key, value] : arguments) text += fmt::format(" {}={}", key, value);
    return text;
  }
  bool has(const Parameter& parameter) const { return arguments.contains(parameter.name); }
  std::string text(const Parameter& parameter) const { return text_argument(arguments, parameter); }
  /// Cases without a type have numbers of 4 bytes.
  DataType type() const {
    return has(dtype_parameter) ? parse_data_type(text(dtype_parameter)) : DataType::uint32;
  }
};

/// All combinations of the operation; and all of type, reduction and memory, with the rest as by
/// default.
std::vector<Subject> subjects_of(const Operation& operation) {
  std::vector<Subject> all;
  for (Arguments& arguments : combinations(operation))
    all.push_back({operation, std::move(arguments)});
  Operation typed = operation;
  for (Parameter& parameter : typed.parameters) {
    if (parameter.name == memory_parameter.name) continue;
    parameter.values.resize(1);
    if (parameter.name == dtype_parameter.name) {
      parameter.values.clear();
      for (const DataType type : data_types()) parameter.values.emplace_back(name(type));
    }
    if (parameter.name == op_parameter.name) {
      parameter.values.clear();
      for (const ReduceOp op : reduce_ops()) parameter.values.emplace_back(name(op));
    }
  }
  for (Arguments& arguments : combinations(typed)) all.push_back({operation, std::move(arguments)});
  return all;
}

/// How many elements members must compare, told by what the operation moves.
std::size_t expected_outputs(const Subject& subject, const OperationCase& prepared, int members) {
  const auto parts = static_cast<std::size_t>(members);
  if (prepared.bytes() == 0) return parts * *parse_number(subject.text(witness_count));
  const std::size_t moved = prepared.bytes() / size_of(subject.type());
  return subject.operation.name.starts_with("reduce_scatter") ? moved / parts : moved;
}

/// How a refusal of the element begins.
std::string refusal_of(const Subject& subject, std::size_t element, std::size_t elements) {
  if (subject.has(dtype_parameter)) return fmt::format("output {} is ", element);
  const bool has_bytes = subject.has(message_bytes);
  const std::size_t part = *parse_number(subject.text(has_bytes ? message_bytes : witness_count)) /
                           (has_bytes ? sizeof(std::uint32_t) : 1);
  const std::string begin = fmt::format("output {} of the part of place ", element % part);
  // Of a single part the operation knows whose it is.
  return elements == part ? begin : fmt::format("{}{} is ", begin, element / part);
}

template <class T>
using BytesOf = std::array<unsigned char, sizeof(T)>;

template <class T>
T with_flipped_bit(T value, std::size_t bit) {
  auto bytes = std::bit_cast<BytesOf<T>>(value);
  bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1u << bit % 8);
  return std::bit_cast<T>(bytes);
}

/// As near to a rounded result as no result with these roundings can be: a right one lies within
/// half of what a check may tolerate.
template <FloatNumber T>
T moved_beyond_rounding(ReduceOp op, T right, int members, double direction) {
  const auto wide = [](T each) { return static_cast<double>(static_cast<Accumulator<T>>(each)); };
  const double value = wide(right);
  // All elements lie between -1 and 1.
  const double magnitude = op == ReduceOp::prod ? std::abs(value) : members;
  const double steps = (members + 1) * rounding<Accumulator<T>> * magnitude;
  const double tolerated = 2 * (steps + rounding<T> * std::abs(value) + smallest<T>);
  for (double distance = 1.5 * tolerated;; distance *= 1.1) {
    const T moved = convert<T>(value + direction * distance);
    if (std::abs(wide(moved) - value) > 1.5 * tolerated) return moved;
  }
}

template <class T>
struct WrongElement {
  std::size_t element;
  T wrong;
};

/// The first, some and the last element, each changed by as little as a check must notice.
template <class T>
std::vector<WrongElement<T>> wrong_elements(const Subject& subject, const std::vector<T>& right,
                                            int members, std::uint64_t seed) {
  const std::size_t some = seed * 7919 % right.size();
  const std::size_t last = right.size() - 1;
  std::size_t bits = 8 * sizeof(T);
  std::vector<WrongElement<T>> all;
  if constexpr (FloatNumber<T>) {
    BytesOf<T> ones;
    ones.fill(0xff);
    all.push_back({some, std::bit_cast<T>(ones)});  // not a number
    if (subject.has(op_parameter)) {
      const ReduceOp op = parse_reduce_op(subject.text(op_parameter));
      const auto moved = [&](std::size_t element, double direction) {
        all.push_back({element, moved_beyond_rounding(op, right[element], members, direction)});
      };
      if (op != ReduceOp::min && op != ReduceOp::max) {
        moved(0, 1);
        moved(some, seed % 2 == 0 ? 1 : -1);
        moved(last, -1);
        return all;
      }
      // Which of two zeros is the smaller one is nobody's promise.
      --bits;
    }
  }
  all.push_back({0, with_flipped_bit(right[0], 0)});
  all.push_back({some, with_flipped_bit(right[some], seed % bits)});
  all.push_back({last, with_flipped_bit(right[last], bits - 1)});
  return all;
}

/// Runs the operation, and changes one element of what this member has got: its check alone.
class SpoiledRun {
 public:
  SpoiledRun(Context& context, const Team& team, const Subject& subject, std::uint64_t seed)
      : context_(context),
        team_(team),
        subject_(subject),
        seed_(seed),
        stream_(context.make_stream()),
        prepared_(prepare_or_refuse(context, team, subject.operation, subject.arguments)) {}

  void run() {
    if (!prepared_) return;
    prepared_->set_inputs(seed_);
    context_.barrier();
    prepared_->launch(stream_);
    stream_.synchronize();
    team_.check();
    require_right();
    with_type(subject_.type(), [&]<class T>(std::type_identity<T>) { spoil<T>(); });
    require_right();
    refuse_what_is_old();
  }

 private:
  void require_right() {
    const std::string difference = prepared_->check(seed_);
    require(difference.empty(), subject_.describe() + ": " + difference);
  }

  void refuse(std::uint64_t seed, const std::string& what, const std::string& beginning = {}) {
    const std::string difference = prepared_->check(seed);
    require(!difference.empty() && difference.starts_with(beginning),
            fmt::format("{}: {} is found as '{}', not as '{}…'", subject_.describe(), what,
                        difference, beginning));
  }

  template <class T>
  void spoil() {
    const std::span<std::byte> outputs = prepared_->outputs();
    const std::size_t expected = expected_outputs(subject_, *prepared_, team_.size());
    require(outputs.size() == expected * sizeof(T),
            fmt::format("{}: {} bytes of outputs, not {} elements", subject_.describe(),
                        outputs.size(), expected));
    std::vector<T> right(expected);
    stream_.copy(right.data(), outputs.data(), outputs.size());
    stream_.synchronize();
    for (const auto& [element, wrong] : wrong_elements(subject_, right, team_.size(), seed_)) {
      std::byte* const place = outputs.data() + element * sizeof(T);
      stream_.copy(place, &wrong, sizeof(T));
      stream_.synchronize();
      refuse(seed_, fmt::format("wrong element {}", element),
             refusal_of(subject_, element, expected));
      stream_.copy(place, &right[element], sizeof(T));
      stream_.synchronize();
    }
  }

  /// What a launch that does nothing leaves.
  void refuse_what_is_old() {
    refuse(seed_ + 1, "the result of other inputs");
    context_.barrier();
    prepared_->set_inputs(seed_);
    refuse(seed_, "the result of the launch before");
  }

  Context& context_;
  Team team_;
  const Subject& subject_;
  std::uint64_t seed_;
  Stream stream_;
  std::unique_ptr<OperationCase> prepared_;
};

IR_SCENARIO(spoiled_outputs) {
  Context context(job);
  // Places are not ranks.
  const Team team = context.make_team({2, 0, 1});
  Sample sample(job.size);
  std::uint64_t seed = 0;
  for (const auto* list : {&operations(), &copy_limits()})
    for (const Operation& operation : *list)
      // Products have a test of their own: tests/matmul/operation_test.cpp.
      for (const Subject& subject : subjects_of(operation))
        if (operation.name != "matmul" && sample.takes_next())
          SpoiledRun(context, team, subject, ++seed).run();
}
TEST(CaseCheck, RefusesAndNamesOneWrongElementOfEveryOperation) {
  expect_all_ok(run_ranks(RankKind::processes, "spoiled_outputs", 3));
}

/// Elements enough for threads to share them.
IR_SCENARIO(large_spoiled_outputs) {
  Context context(job);
  const Operation& operation = *std::ranges::find(operations(), "all_reduce", &Operation::name);
  const auto prepared =
      operation.prepare(context, context.world(), {{"bytes", "2200000"}, {"dtype", "uint8"}});
  Memory memory(context);
  Stream stream = context.make_stream();
  prepared->set_inputs(1);
  prepared->launch(stream);
  stream.synchronize();
  require(prepared->check(1).empty(), "the result is right");
  for (const std::size_t element : {2'199'999u, 1'200'000u, 700'000u}) {
    std::byte* const place = prepared->outputs().data() + element;
    memory.write(place, memory.read(place) ^ std::byte{1});
    const std::string difference = prepared->check(1);
    require(difference.starts_with(fmt::format("output {} is ", element)),
            fmt::format("{} is the first wrong element: '{}'", element, difference));
  }
}
TEST(CaseCheck, NamesTheFirstWrongElementOfMany) {
  expect_all_ok(run_ranks(RankKind::processes, "large_spoiled_outputs", 1));
}

}  // namespace
}  // namespace iridium::test
