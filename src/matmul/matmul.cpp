#include "iridium/matmul.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "base/names.h"
#include "matmul/choice.h"
#include "matmul/launch.h"

namespace iridium {
namespace {

using detail::MatmulBuffers;
using detail::MatmulOperand;

constexpr Names<MatmulAlgorithm, 6> algorithm_names = {
    "matmul algorithm",
    {"automatic", "simple", "narrow", "hopper_64x128", "hopper_128x128", "hopper_128x256"}};
constexpr auto algorithms = algorithm_names.values();

constexpr Names<MatmulLayout, 2> layout_names = {"layout of B", {"kn", "nk"}};
constexpr auto layouts = layout_names.values();

Error refusal(const std::string& reason) {
  return {Errc::invalid_argument, "matmul: " + reason};
}

/// The bytes from a matrix's first element to behind its last.
std::size_t span_bytes(const char* which, const MatmulOperand& matrix, DataType type) {
  if (matrix.pitch < matrix.columns)
    throw refusal(fmt::format("{} has a pitch of {} elements and {} columns", which, matrix.pitch,
                              matrix.columns));
  if (matrix.rows == 0 || matrix.columns == 0) return 0;
  // Differences of addresses are signed.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (matrix.pitch > most / size_of(type) / matrix.rows)
    throw refusal(fmt::format("{} has {} rows of {} elements of {}, over the limit of {} bytes",
                              which, matrix.rows, matrix.pitch, name(type), most));
  if (matrix.data == nullptr)
    throw refusal(fmt::format("{} is null and has {} rows and {} columns", which, matrix.rows,
                              matrix.columns));
  if (const auto over = reinterpret_cast<std::uintptr_t>(matrix.data) % size_of(type); over != 0)
    throw refusal(fmt::format("{} begins {} bytes behind an element of {}, which has {} bytes",
                              which, over, name(type), size_of(type)));
  return ((matrix.rows - 1) * matrix.pitch + matrix.columns) * size_of(type);
}

void check_shapes(const MatmulBuffers& buffers, MatmulLayout layout) {
  const auto& [d, a, b, d_data, type] = buffers;
  const bool is_kn = layout == MatmulLayout::kn;
  const std::size_t depth = is_kn ? b.rows : b.columns;
  const std::size_t columns = is_kn ? b.columns : b.rows;
  if (a.rows == d.rows && a.columns == depth && columns == d.columns) return;
  throw refusal(
      fmt::format("D has {} rows and {} columns; A of {} × {} times B of {} × {}, stored as {}, "
                  "does not make that",
                  d.rows, d.columns, a.rows, a.columns, b.rows, b.columns, name(layout)));
}

/// Throws unless no byte of D is also the input's.
void check_apart(const MatmulOperand& d, std::size_t d_bytes, const char* which,
                 const MatmulOperand& input, std::size_t bytes) {
  const auto out = reinterpret_cast<std::uintptr_t>(d.data);
  const auto in = reinterpret_cast<std::uintptr_t>(input.data);
  if (d_bytes == 0 || bytes == 0 || out + d_bytes <= in || in + bytes <= out) return;
  throw refusal(fmt::format("D ({} bytes at {:#x}) overlaps {} ({} bytes at {:#x})", d_bytes, out,
                            which, bytes, in));
}

void check(const MatmulBuffers& buffers, MatmulLayout layout) {
  if (layout != MatmulLayout::kn && layout != MatmulLayout::nk)
    throw refusal(fmt::format("there is no layout of B with number {}", static_cast<int>(layout)));
  check_shapes(buffers, layout);
  const std::size_t d_bytes = span_bytes("D", buffers.d, buffers.type);
  const std::size_t a_bytes = span_bytes("A", buffers.a, buffers.type);
  const std::size_t b_bytes = span_bytes("B", buffers.b, buffers.type);
  check_apart(buffers.d, d_bytes, "A", buffers.a, a_bytes);
  check_apart(buffers.d, d_bytes, "B", buffers.b, b_bytes);
}

void launch(const Problem& problem, MatmulAlgorithm algorithm) {
  switch (algorithm) {
    case MatmulAlgorithm::automatic:
    case MatmulAlgorithm::simple:
      return launch_simple_product(problem);
    case MatmulAlgorithm::narrow:
      return launch_narrow_product(problem);
    case MatmulAlgorithm::hopper_64x128:
    case MatmulAlgorithm::hopper_128x128:
    case MatmulAlgorithm::hopper_128x256:
      return launch_hopper_product(problem, algorithm);
  }
}

}  // namespace

std::span<const MatmulAlgorithm> matmul_algorithms() {
  return algorithms;
}
std::string_view name(MatmulAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
MatmulAlgorithm parse_matmul_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

std::span<const MatmulLayout> matmul_layouts() {
  return layouts;
}
std::string_view name(MatmulLayout layout) {
  return layout_names.name(layout);
}
MatmulLayout parse_matmul_layout(std::string_view text) {
  return layout_names.parse(text);
}

KernelList matmul_kernels() {
  KernelList list;
  for (const KernelList& some :
       {simple_product_kernels(), narrow_product_kernels(), hopper_product_kernels()})
    list.insert(list.end(), some.begin(), some.end());
  return list;
}

void detail::matmul(StreamRef& stream, const MatmulBuffers& buffers, const MatmulOptions& options) {
  check(buffers, options.layout);
  const Problem problem = {stream,
                           buffers.type,
                           buffers.d_data,
                           buffers.a.data,
                           buffers.b.data,
                           buffers.d.rows,
                           buffers.d.columns,
                           buffers.a.columns,
                           buffers.d.pitch,
                           buffers.a.pitch,
                           buffers.b.pitch,
                           options.layout,
                           Access::stream(stream).processors()};
  if (const Objection objection = object_to_algorithm(options.algorithm, problem))
    throw Error(objection.code, "matmul: " + objection.reason);
  if (problem.rows == 0 || problem.columns == 0) return;
  // Without K there is nothing to multiply: the simple loop writes zeros.
  if (problem.depth == 0) return launch_simple_product(problem);
  launch(problem, options.algorithm == MatmulAlgorithm::automatic
                      ? choose_algorithm(problem, options.invariant)
                      : options.algorithm);
}

}  // namespace iridium
