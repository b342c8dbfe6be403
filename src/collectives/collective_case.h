// The registry's cases of the collectives: arrays with random elements, and what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collectives/case_buffers.h"
#include "iridium/collective_buffers.h"
#include "iridium/numbers.h"

namespace iridium {

// Parameters that several collectives have.
inline const Parameter collective_bytes = {"bytes", {"4012", "4", "100000"}};
inline const Parameter dtype_parameter = {"dtype", {"bf16"}};
inline const Parameter op_parameter = {"op", {"sum"}};
inline const Parameter memory_parameter = {"memory", {"plain", "symmetric"}};
/// Of operations that can put their result where the input was, in plain memory.
inline const Parameter memory_or_place = {"memory", {"plain", "symmetric", "in_place"}};
inline const Parameter blocks_wish = {"blocks", {"automatic"}};
inline const Parameter tile_wish = {"tile", {"automatic"}};

/// A number from 1 up, or 0 for "automatic".
int wish_argument(const Arguments& arguments, const Parameter& parameter);

/// What the arguments of every collective say.
struct CollectiveArguments {
  std::size_t bytes;
  DataType type;
  ReduceOp op;
  bool symmetric;
  bool in_place;
  int blocks;
  int tile;

  /// How many elements the bytes hold, for each of `members`; at least one.
  std::size_t count(int members = 1) const;
};
/// `memory`: with the kinds that the operation has. Throws `invalid_argument` for values that mean
/// nothing.
CollectiveArguments parse_collective(const Arguments& arguments,
                                     const Parameter& memory = memory_parameter);

/// One of a collective's elements: what member `place` has at `index`.
struct SourceElement {
  int place;
  std::size_t index;
};

/// A collective, as its case needs to know it.
struct Collective {
  std::size_t count;      ///< what the operation calls so
  std::size_t in_count;   ///< elements of every member's input
  std::size_t out_count;  ///< and of its output
  bool reduces;           ///< an output combines the elements that all members have at one index
  /// What becomes output `i`; where it reduces, only the index counts.
  std::function<SourceElement(std::size_t i)> source;
  std::function<void(StreamRef&, const detail::CollectiveBuffers&)> launch;
  std::size_t payload;  ///< elements that bandwidths are about
  double bus_factor;
};

/// A collective on arrays with random elements.
class CollectiveCase final : public OperationCase {
 public:
  CollectiveCase(Context& context, const Team& team, const CollectiveArguments& arguments,
                 Collective collective);

  void set_inputs(std::uint64_t seed) override;
  void launch(StreamRef& stream) override;
  void launch_alone(StreamRef& stream) override;
  std::string check(std::uint64_t seed) override;
  std::span<std::byte> outputs() override;
  std::size_t bytes() const override;
  double bus_factor() const override { return collective_.bus_factor; }

 private:
  /// What the collective reads. In place, `launch` has put the input where the result comes.
  const SymmetricArray<std::uint64_t>& source() const { return arguments_.in_place ? out_ : in_; }

  Team team_;
  Stream stream_;
  CollectiveArguments arguments_;
  Collective collective_;
  // Large enough for elements of any type.
  SymmetricArray<std::uint64_t> in_;
  SymmetricArray<std::uint64_t> out_;
};

}  // namespace iridium
