// What the cases of the registry share: buffers with values drawn from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iridium/operations.h"
#include "operations/arguments.h"

namespace iridium {

/// How many bytes go from member to member.
inline const Parameter message_bytes = {"bytes", {"4012", "4", "400000"}};
/// The same as numbers of 4 bytes. Throws `invalid_argument` for what is no multiple of that.
std::size_t number_argument(const Arguments& arguments);

/// How many numbers tell whether operations without a payload have worked.
inline const Parameter witness_count = {"count", {"1003", "1"}};

/// `Operation::prepare` for a `Case` made of context, team and arguments.
template <class Case>
std::unique_ptr<OperationCase> prepare_case(Context& context, const Team& team,
                                            const Arguments& arguments) {
  return std::make_unique<Case>(context, team, arguments);
}

/// Every member contributes `count` numbers, and ends with those of `parts` members: inputs,
/// outputs, and the comparison.
class CaseBuffers {
 public:
  CaseBuffers(Context& context, const Team& team, std::size_t count, int parts);

  void set_inputs(std::uint64_t seed);
  /// The first difference from what members `places` contributed, in this order.
  std::string check(std::uint64_t seed, const std::vector<int>& places);
  /// The same for all members.
  std::string check_all(std::uint64_t seed);

  /// `OperationCase::outputs`.
  std::span<std::byte> outputs() { return std::as_writable_bytes(output.span()); }

  /// Shows members each other's inputs, in `shared`, while what `read` submits reads them: between
  /// two barriers.
  void read_shared(StreamRef& stream, const std::function<void()>& read);
  /// Copies everybody's `shared` to the output, beginning with this member's.
  void gather_shared(StreamRef& stream);

  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(std::uint32_t); }

  SymmetricArray<std::uint32_t> input;   ///< count
  SymmetricArray<std::uint32_t> shared;  ///< count: for peers
  SymmetricArray<std::uint32_t> output;  ///< count per part

 private:
  std::vector<std::uint32_t> values(std::uint64_t seed, int place) const;

  Team team_;
  Stream stream_;
  std::size_t count_;
};

}  // namespace iridium
