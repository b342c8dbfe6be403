// The tuning table: which algorithm and which grid a collective gets, and which algorithm a matrix
// product, when the program leaves that to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "iridium/matmul_shape.h"
#include "iridium/types.h"

namespace iridium {

/// What `automatic` decides by. Nothing of it may differ between members of a team.
struct TuningCase {
  std::string_view operation;    ///< "all_reduce"
  bool symmetric = false;        ///< called with symmetric arrays
  std::string_view backend;      ///< "cuda", "host"
  std::string_view device = {};  ///< as `tuning_device` writes it; empty when members differ
  int members = 1;
  std::size_t bytes = 0;     ///< of one member's largest buffer
  Link link = Link::shared;  ///< the worst one between two members
};

/// What `automatic` of a matrix product decides by, besides what an algorithm can do.
struct MatmulTuningCase {
  std::string_view dtype;        ///< of A and B: "bf16", "fp16", "fp32", "tf32", "e4m3"
  std::string_view layout;       ///< of B: "kn", "nk"
  std::string_view backend;      ///< "cuda", "host"
  std::string_view device = {};  ///< as `tuning_device` writes it
  MatmulShape shape = {};
};

/// What it decides.
struct Choice {
  std::string algorithm;
  int blocks = 1;               ///< at most; small messages get fewer
  int tile = 1;                 ///< 16-byte vectors a thread has on their way
  std::size_t round_bytes = 0;  ///< staged per member and round, at most; 0: what the lane holds

  bool operator==(const Choice&) const = default;
};

/// Rows, of which the first that fits a case decides.
///
/// As text, a row is a line of ten words, "all_reduce plain cuda nvlink 2 64K packet 16 1 0":
/// operation; plain or symmetric; backend or device, "NVIDIA_H200"; link, as `tuning_link` has it;
/// the most members and the most bytes it is for; then the choice. The first six can be `*`: any.
/// A row of nine words has no link, and is for any. Blank lines and what follows a `#` mean
/// nothing.
///
/// Rows of matrix products have eight words, "matmul bf16 nk cuda 16 * 8192 narrow": operation;
/// element type; layout of B; backend or device; the largest M, N and K they are for; then the
/// algorithm. All but the first and the last can be `*`. With `automatic` no row behind decides.
class TuningTable {
 public:
  /// Throws `invalid_argument` with the line's number for what is no table.
  explicit TuningTable(std::string_view text);

  /// Throws `unsupported` for a case that no row fits.
  Choice choose(const TuningCase& what) const;
  /// The algorithm of the first row that fits and that is `automatic`, or that `can` accepts.
  /// `automatic` where there is none: an estimate decides.
  std::string_view choose(const MatmulTuningCase& what,
                          const std::function<bool(std::string_view algorithm)>& can) const;
  /// Of the text: members of a team must have the same.
  std::uint64_t hash() const { return hash_; }

 private:
  struct Row {
    std::string operation, memory, device, link;
    int members;
    std::size_t bytes;
    Choice choice;
  };
  struct MatmulRow {
    std::string dtype, layout, device;
    MatmulShape most;
    std::string algorithm;
  };
  void add_row(int line, std::vector<std::string> words);
  void add_matmul_row(int line, const std::vector<std::string>& words);

  std::vector<Row> rows_;
  std::vector<MatmulRow> matmul_rows_;
  std::uint64_t hash_;
};

/// How many blocks of a call on so many bytes have something to do: it gets no more, whatever the
/// table says, unless its options ask for them.
int useful_blocks(std::size_t bytes, std::string_view algorithm);

/// A device's name as rows have it: one word, "NVIDIA_H200".
std::string tuning_device(std::string_view name);

/// A link as rows have it: "shared", "nvlink", or "pcie" with and without atomics.
std::string_view tuning_link(Link link);

/// The table the library comes with.
std::string_view shipped_tuning_table();
/// This process's table: the file that IRIDIUM_TUNING_TABLE names, else the shipped one. Read once,
/// by the first call, which a context makes: only that one needs a free descriptor. Throws
/// `invalid_argument` when it is no table, or cannot be read.
const TuningTable& tuning_table();

}  // namespace iridium
