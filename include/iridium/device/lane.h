// A team's lane: the part of every member's segment that its kernels talk through.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iridium/device/block.h"
#include "iridium/device/peers.h"

namespace iridium {

/// Why a team failed on the device.
enum class FaultKind : std::uint32_t {
  none,
  timeout,         ///< a wait expired; `missing` did not arrive
  lane_busy,       ///< two calls at once on one lane
  grid_too_large,  ///< a kernel ran with more blocks than the lane has
  peer_left,       ///< a wait needs a signal of members that have destroyed their context
  // Found in checked mode; what `detail` holds.
  no_such_place,      ///< place
  outside_segment,    ///< address, bytes, the segment's address and bytes
  outside_matrix,     ///< row, column, the matrix's rows and columns
  narrow_pitch,       ///< pitch, columns
  calls_differ,       ///< the reporter's `CallValue` and that of `seen`, of the term `expected`
  parts_differ,       ///< the bytes that the reporter expects of `seen`, and those it is sent
  no_native_atomics,  ///< place
};

/// What errors call the work of a kernel.
struct OperationName {
  alignas(8) char text[24] = {};  ///< ends with a 0
};
inline constexpr int max_operation_length = 23;

/// What a kernel knows about a failure. The same on every member.
struct FaultRecord {
  FaultKind kind = FaultKind::none;
  std::uint32_t reporter = 0;  ///< place of the member that found it
  std::uint32_t block = 0;
  std::uint32_t step = 0;
  std::uint32_t expected = 0;  ///< value of the first missing flag
  std::uint32_t seen = 0;
  std::uint64_t missing = 0;  ///< a bit per place
  std::uint64_t detail[6] = {};
  OperationName operation;
};

/// What checked mode compares of a collective's calls.
enum class CallTerm : std::uint32_t {
  operation,
  memory,  ///< plain or symmetric
  type,
  reduction,
  count,
  root,
  rows,
  algorithm,
  blocks,
  tile,
  in_offset,  ///< in the heap; of symmetric buffers, like those below
  out_offset,
  in_pitch,
  out_pitch,
  step,  ///< of the lane
};
inline constexpr int call_term_count = 15;

/// A term's value: letters, as many as an `OperationName` has, or a number in the first word.
/// Zeros: there is none.
struct CallValue {
  std::uint64_t words[3] = {};
};
static_assert(sizeof(CallValue) == sizeof(OperationName));

/// A collective's call as checked mode knows it.
struct CallRecord {
  CallValue terms[call_term_count];
  std::uint64_t sent[max_team_size] = {};  ///< bytes for each place, where members choose them

  IR_DEVICE CallValue& operator[](CallTerm term) { return terms[static_cast<std::uint32_t>(term)]; }
};

/// A lane's words in device memory. Members write each other's `abort`, `fault_taken`, `raised` and
/// `faults`; the rest is their own. Words that are polled or counted have a cache line each.
struct LaneState {
  alignas(128) std::uint64_t calls;    ///< {step, blocks inside, blocks entered}: 32, 16, 16 bits
  alignas(128) std::uint64_t leavers;  ///< {sum of call ids, blocks that asked to leave}
  alignas(128) std::uint32_t abort;    ///< see `LaneAbort`
  /// Who gets to report, first come: at place 0, or, without native atomics, at each member among
  /// its own blocks.
  alignas(128) std::uint32_t fault_taken;
  alignas(128) std::uint32_t raised[max_team_size];  ///< 1 when the reporter's `faults` is written
  FaultRecord faults[max_team_size];                 ///< by the reporter's place
  alignas(128) std::uint8_t ranks[max_team_size];    ///< of the members, by place
  alignas(128) CallRecord call;                      ///< in checked mode: what this member calls
};

/// A lane's words for the blocks with one index, in device memory.
struct LaneBlock {
  /// {blocks with this index that are in a call, barrier counter}: high and low half.
  alignas(128) std::uint64_t counter;
  /// Barrier flags, one per source, which the source writes.
  alignas(128) std::uint32_t flags[max_team_size];
};

/// The most pieces that blocks of one rank can tell each other of.
inline constexpr int max_pieces = 4096;

/// What the blocks of a kernel tell each other within one rank, in device memory. Zero between
/// kernels: the last block that leaves one sees to it.
struct LanePieces {
  alignas(128) std::uint32_t tickets;  ///< blocks that have begun
  alignas(128) std::uint32_t leavers;  ///< blocks that are done
  alignas(128) std::uint32_t ready[max_pieces];
};

/// Values of `LaneState::abort`.
enum LaneAbort : std::uint32_t {
  lane_is_well = 0,
  lane_has_fault = 1,     ///< one of `faults` is written
  lane_ended_by_host = 2  ///< the host knows why
};

/// A lane's words in host memory that both this rank's kernels and its host reach.
struct LaneStatus {
  std::uint32_t abort = 0;        ///< written by the host: waits end
  std::uint32_t fault_taken = 0;  ///< the block that copies the fault
  std::uint32_t failed = 0;       ///< written by a kernel: `fault` is complete
  FaultRecord fault;
  std::uint64_t left = 0;  ///< written by the host: members that are gone in peace, a bit per place
};

/// Where the parts of a lane lie: byte offsets from its start, the same on every member. It starts
/// with a `LaneState`, and a `LaneBlock` per block.
struct LaneLayout {
  std::int32_t max_blocks = 0;
  std::int32_t members = 0;
  std::size_t packets = 0;  ///< [parity][source][slot], 16 bytes each; never holds anything else
  /// [parity], behind a `LanePieces`; the only part that need not start as zero
  std::size_t scratch = 0;
  std::size_t bytes = 0;          ///< of the whole lane
  std::size_t packet_slots = 0;   ///< per parity and source
  std::size_t scratch_bytes = 0;  ///< per parity

  bool operator==(const LaneLayout&) const = default;
};

/// A lane as a kernel holds it; made by `Team::lane`. A plain value: copy it into the kernel.
///
/// A kernel talks through it by a `LaneCall`, or waits under its timeout by `wait`. It names the
/// same memory for as long as the team lives.
class Lane {
 public:
  struct Terms {
    // What every barrier needs comes first: a kernel's arguments are fetched line by line, and
    // begin 16 bytes into the first line of 64.
    Peers peers;
    std::byte* base = nullptr;  ///< of this member's lane
    LaneStatus* status = nullptr;
    std::uint64_t timeout_ns = 0;
    LaneLayout layout;
    std::uint32_t call_id = 0;  ///< tells this lane's calls apart where they overlap
    // This rank's whole segment in checked mode, else nothing.
    const std::byte* segment = nullptr;
    std::size_t segment_bytes = 0;
    OperationName operation;
  };

  Lane() = default;
  IR_DEVICE explicit Lane(const Terms& terms) : terms_(terms) {}

  IR_DEVICE const Peers& peers() const { return terms_.peers; }
  IR_DEVICE const LaneLayout& layout() const { return terms_.layout; }
  IR_DEVICE const Terms& terms() const { return terms_; }
  /// The largest grid that may talk through the lane.
  IR_DEVICE int max_blocks() const { return terms_.layout.max_blocks; }
  /// Whether accesses to peers are checked.
  IR_DEVICE bool is_checked() const { return terms_.segment_bytes != 0; }

  // This member's parts of the lane.
  IR_DEVICE LaneState* state() const { return at<LaneState>(0); }
  IR_DEVICE LaneBlock& block(int index) const {
    return at<LaneBlock>(sizeof(LaneState))[static_cast<std::uint32_t>(index)];
  }
  IR_DEVICE target::Pair* packets(std::uint32_t parity, int source) const {
    return at<target::Pair>(terms_.layout.packets) +
           (parity * static_cast<std::size_t>(terms_.layout.members) +
            static_cast<std::size_t>(source)) *
               terms_.layout.packet_slots;
  }
  IR_DEVICE LanePieces* pieces() const {
    return at<LanePieces>(terms_.layout.scratch - sizeof(LanePieces));
  }
  template <class T = std::byte>
  IR_DEVICE T* scratch(std::uint32_t parity) const {
    return at<T>(terms_.layout.scratch + parity * terms_.layout.scratch_bytes);
  }

 private:
  template <class T>
  IR_DEVICE T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(terms_.base + offset);
  }

  Terms terms_;
};
static_assert(offsetof(Lane::Terms, status) == 48, "what barriers need ends with the first line");

}  // namespace iridium
