// Calls of all_gather_matmul, and what they should give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

struct GatherCase {
  std::size_t rows = 1;     ///< M
  std::size_t columns = 1;  ///< N
  std::size_t depth = 1;    ///< K
  AllGatherMatmulOptions options = {};
  bool symmetric = true;
  std::size_t gap = 0;    ///< elements between rows of all matrices
  bool finished = false;  ///< with scale, bias, activation and residual
};
std::string describe(const GatherCase& what);

/// Runs cases of one type, one after the other on the same arrays. B is the same on all members.
template <class T>
class GatherRun {
 public:
  /// `elements`: of the largest matrix.
  GatherRun(Context& context, const Team& team, std::size_t elements);

  /// Gives A and B new values, and spoils the gathered A and D. Waits for all members.
  void set_inputs(const GatherCase& what, std::uint64_t seed);
  void launch(StreamRef& stream, const GatherCase& what) const;
  /// Throws unless the gathered A is that of the seed, D the product, and D's bits are those of all
  /// members. Waits for all members.
  void check(const GatherCase& what, std::uint64_t seed);

  void run(const GatherCase& what, std::uint64_t seed) {
    set_inputs(what, seed);
    launch(stream_, what);
    check(what, seed);
  }
  StreamRef& stream() { return stream_; }

 private:
  void check_product(const GatherCase& what, std::uint64_t seed, const std::vector<T>& d) const;
  void check_members_agree(const GatherCase& what, const std::vector<T>& d);

  Team team_;
  mutable Stream stream_;
  SymmetricArray<T> shard_;
  SymmetricArray<T> gathered_;
  SymmetricArray<T> b_;
  SymmetricArray<T> d_;
  SymmetricArray<T> bias_;
  SymmetricArray<std::uint64_t> hash_;
  SymmetricArray<std::uint64_t> hashes_;
};

}  // namespace iridium::test
