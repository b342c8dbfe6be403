// Calls of the collectives as values: what to call, on which elements, and what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

enum class Collective { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };

/// Where `out` lies.
enum class Overlap {
  none,
  same,  ///< where `in` does
  own,   ///< reduce_scatter: this member's shard of `in`; all_gather: `in` is its part of `out`
};

/// What the elements are.
enum class Values {
  drawn,    ///< numbers for reductions, any bits for the others
  special,  ///< every combination over three members of NaN, infinities, zeros, subnormals, …
};

/// One call: the same on every member.
struct Call {
  Collective collective = Collective::all_reduce;
  std::string algorithm = "automatic";
  DataType type = DataType::fp32;
  ReduceOp op = ReduceOp::sum;
  bool symmetric = false;
  std::size_t count = 1;
  int blocks = 0;
  int tile = 0;
  int root = 0;
  Overlap overlap = Overlap::none;
  std::size_t in_shift = 0;  ///< elements that the array begins behind a multiple of 16 bytes
  std::size_t out_shift = 0;
  Values values = Values::drawn;
};
std::string describe(const Call& call);

/// The names of the collective's algorithms, `automatic` among them.
std::vector<std::string> algorithms_of(Collective collective);
bool reduces(Collective collective);
/// Whether the algorithm knows the reduction.
bool knows(const std::string& algorithm, ReduceOp op);
/// Whether the team's link cannot do it: runs of it see their launches refused.
bool is_refused(const Call& call, const Team& team);
/// Every collective, algorithm and kind of memory, with `call`'s other members.
std::vector<Call> every_form(const Call& call);
/// Elements that make a call's elements `Values::special` complete.
inline constexpr std::size_t special_count = 1000;

/// Runs a call any number of times on the same arrays, and checks it against plain code: bit for
/// bit, and reductions of floats also against fp64.
class CallRun {
 public:
  virtual ~CallRun() = default;

  // On members. The first three return at once; their work is the stream's.
  /// Gives the arrays new contents: inputs drawn from `seed`, everything else poisoned.
  virtual void set(StreamRef& stream, std::uint64_t seed) = 0;
  virtual void launch(StreamRef& stream) = 0;
  /// Reads what has become of the arrays since the last `set`.
  virtual void fetch(StreamRef& stream) = 0;
  /// Overwrites the input, which nobody may need any more.
  virtual void spoil(StreamRef& stream) = 0;
  /// After a `synchronize`: throws unless every fetch found the outputs right, and nothing else
  /// changed but by `spoil`.
  virtual void check() = 0;
  /// Of the outputs that the last `check` looked at.
  virtual std::uint64_t digest() const = 0;

  /// `set`, `launch` and `fetch`.
  void run(StreamRef& stream, std::uint64_t seed);
};

/// Runs of calls with elements of one type, all on the same two arrays. Collective over the world.
std::vector<std::unique_ptr<CallRun>> make_runs(Context& context, const Team& team,
                                                const std::vector<Call>& calls);
/// One run with arrays of its own. Collective over the world.
std::unique_ptr<CallRun> make_run(Context& context, const Team& team, const Call& call);

/// A lane with little room, so that even small calls take several rounds.
inline const TeamOptions narrow_lane = {
    .max_blocks = 64, .scratch_bytes = 2048, .packet_bytes = 2048, .name = "narrow"};

/// Runs the calls one behind the other on one stream, on shared arrays, and checks them. All calls
/// have elements of one type. Collective over the world.
void run_all(Context& context, const Team& team, const std::vector<Call>& calls);

}  // namespace iridium::test
