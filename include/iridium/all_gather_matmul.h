// Matrix products of an A that is divided between members.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include "iridium/columns.h"
#include "iridium/matmul.h"
#include "iridium/team.h"

namespace iridium {

/// How it is done; docs/matmul.md has the steps of each.
enum class AllGatherMatmulAlgorithm {
  automatic,  ///< `unfused`, until something else was measured to be faster
  unfused,    ///< an all-gather, then the product
  staged,     ///< some blocks gather while others multiply what is there
};

/// All of them, in this order.
std::span<const AllGatherMatmulAlgorithm> all_gather_matmul_algorithms();
std::string_view name(AllGatherMatmulAlgorithm algorithm);
/// The algorithm called `text`; throws `invalid_argument` with the known names.
AllGatherMatmulAlgorithm parse_all_gather_matmul_algorithm(std::string_view text);

/// What of A a member has.
enum class MatmulShards {
  rows,   ///< M / members rows of it, in the order of places
  depth,  ///< M rows, and K / members columns of it
};

/// Both, in this order.
std::span<const MatmulShards> matmul_shards();
/// "rows".
std::string_view name(MatmulShards shards);
/// What is called `text`; throws `invalid_argument` with the known names.
MatmulShards parse_matmul_shards(std::string_view text);

/// The same on every member.
struct AllGatherMatmulOptions {
  AllGatherMatmulAlgorithm algorithm = AllGatherMatmulAlgorithm::automatic;
  MatmulShards shards = MatmulShards::rows;
  MatmulOptions matmul = {};  ///< of the product; `staged` has one of its own
  /// Of `staged`: blocks that gather, and elements of K that are waited for together; 0: chosen by
  /// the library.
  int gathering_blocks = 0;
  std::size_t piece_depth = 0;
};

namespace detail {

/// The product is that of the gathered A.
struct AllGatherMatmulCall {
  MatmulCall product;
  MatmulOperand shard;
  void* gathered;  ///< `product.a.data`, to be written
  bool symmetric;  ///< peers may read the shard
};

void all_gather_matmul(StreamRef& stream, const Team& team, const AllGatherMatmulCall& call,
                       const AllGatherMatmulOptions& options);

}  // namespace detail

/// `gathered` becomes the A of which every member has a shard, and D = A × B, with what `epilogue`
/// says; D, B and the epilogue are each member's own. Members' shards are alike, and together they
/// are A: of `gathered.rows` and `gathered.columns`. Knows `unfused`, for which rows of a shard and
/// of `gathered` follow each other without gaps when shards are rows.
///
/// Collective over the team. Returns at once; can be captured. `gathered` overlaps nothing else.
/// The bits are those of `matmul` with the gathered A, on every member alike. Throws before
/// anything is launched what `matmul` and `all_gather` throw.
template <class D>
  requires HalfNumber<D> || std::same_as<D, float>
void all_gather_matmul(StreamRef& stream, const Team& team, const Matrix<D>& d,
                       const std::type_identity_t<Matrix<D>>& gathered,
                       const std::type_identity_t<Matrix<const D>>& shard,
                       const std::type_identity_t<Matrix<const D>>& b,
                       const AllGatherMatmulOptions& options = {},
                       const std::type_identity_t<MatmulEpilogue<D>>& epilogue = {}) {
  detail::all_gather_matmul(stream, team,
                            {detail::matmul_call<D, D>(d, gathered, b, epilogue),
                             detail::matmul_operand(shard), gathered.data, false},
                            options);
}

/// The same with shards in symmetric memory, which peers read: knows all algorithms. Shards have
/// the same pitch on every member.
template <class D>
  requires HalfNumber<D> || std::same_as<D, float>
void all_gather_matmul(StreamRef& stream, const Team& team, const Matrix<D>& d,
                       const std::type_identity_t<Matrix<D>>& gathered,
                       const SymmetricMatrix<D>& shard,
                       const std::type_identity_t<Matrix<const D>>& b,
                       const AllGatherMatmulOptions& options = {},
                       const std::type_identity_t<MatmulEpilogue<D>>& epilogue = {}) {
  const Matrix<const D> part = {shard.array.data() + shard.first, shard.rows, shard.columns,
                                shard.pitch};
  detail::require_matrix("all_gather_matmul", "the shard", shard.array.size(), shard.first,
                         detail::ColumnsOf{part.data, part.rows, part.columns, part.pitch});
  detail::all_gather_matmul(stream, team,
                            {detail::matmul_call<D, D>(d, gathered, b, epilogue),
                             detail::matmul_operand(part), gathered.data, true},
                            options);
  shard.array.retain_in_capture(stream);
}

}  // namespace iridium
