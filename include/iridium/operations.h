// Every stream operation of the library, described once: what tests, the probe and benchmarks walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iridium/context.h"

namespace iridium {

/// An operation with its arguments and buffers, ready to run on this rank.
class OperationCase {
 public:
  virtual ~OperationCase() = default;

  /// Gives the inputs new values, drawn from `seed`, and makes old outputs recognisable. Waits.
  /// Every rank passes the same seed, while no launch is running on any.
  virtual void set_inputs(std::uint64_t seed) = 0;
  /// Submits the operation. Collective over the team; can be captured.
  virtual void launch(StreamRef& stream) = 0;
  /// Compares the outputs with a plain reference: empty when they are right for `seed`, else the
  /// first difference. The launches before it are done.
  virtual std::string check(std::uint64_t seed) = 0;
  /// What `check` compares, in this rank's memory: elements without gaps, in the order in which it
  /// numbers them. Empty where it compares none. Tests spoil them, so that `check` must refuse.
  virtual std::span<std::byte> outputs() { return {}; }
  /// Submits what `launch` is about, without what makes its result checkable: what benchmarks time.
  /// Collective over the team; can be captured.
  virtual void launch_alone(StreamRef& stream) { launch(stream); }
  /// The algorithm that `launch_alone` runs, where arguments leave it to the library and it is
  /// known; else empty.
  virtual std::string chosen() const { return {}; }
  /// Payload `launch_alone` moves on this rank, for bandwidths.
  virtual std::size_t bytes() const = 0;
  /// Floating-point operations of `launch_alone` on this rank; 0 where it only moves data.
  virtual double flops() const { return 0; }
  /// How many bytes cross a rank's links for each byte of payload.
  virtual double bus_factor() const { return 1; }
};

/// An argument's values by its name; what is missing has its default.
using Arguments = std::map<std::string, std::string>;

struct Parameter {
  std::string name;
  std::vector<std::string> values;  ///< worth trying; the first is the default
};

struct Operation {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;
  /// Collective over the world. Throws `invalid_argument` for arguments it does not know, and
  /// `unsupported`, on every rank, where the team's link or the ranks' devices cannot do it.
  std::function<std::unique_ptr<OperationCase>(Context&, const Team&, const Arguments&)> prepare;
  /// Its `launch` is a call of the host's: it ignores the stream, and captures refuse it.
  bool is_host_call = false;
};

/// All stream operations, by name.
const std::vector<Operation>& operations();
/// Plain copies, by name: what bandwidths are seen beside.
const std::vector<Operation>& copy_limits();
/// Host calls that no capture may let pass, by name.
const std::vector<Operation>& host_calls();

/// Every combination of the values of the operation's parameters.
std::vector<Arguments> combinations(const Operation& operation);

}  // namespace iridium
