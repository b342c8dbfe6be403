#include "iridium/matmul.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "base/names.h"
#include "matmul/choice.h"
#include "matmul/launch.h"

namespace iridium {
namespace {

using detail::MatmulCall;
using detail::MatmulOperand;

constexpr Names<MatmulAlgorithm, 8> algorithm_names = {
    "matmul algorithm",
    {"automatic", "simple", "narrow", "hopper_64x128", "hopper_128x128", "hopper_128x256",
     "hopper_64x128_k4", "hopper_128x128_k2"}};
constexpr auto algorithms = algorithm_names.values();

constexpr Names<MatmulLayout, 2> layout_names = {"layout of B", {"kn", "nk"}};
constexpr auto layouts = layout_names.values();

constexpr Names<MatmulActivation, 4> activation_names = {"activation",
                                                         {"none", "relu", "gelu", "silu"}};
constexpr auto activations = activation_names.values();

constexpr Names<MatmulType, 4> type_names = {"type", {"fp16", "bf16", "fp32", "e4m3"}};

Error refusal(const std::string& reason) {
  return {Errc::invalid_argument, "matmul: " + reason};
}

/// The bytes from a matrix's first element to behind its last.
std::size_t span_bytes(const char* which, const MatmulOperand& matrix, MatmulType type) {
  if (matrix.pitch < matrix.columns)
    throw refusal(fmt::format("{} has a pitch of {} elements and {} columns", which, matrix.pitch,
                              matrix.columns));
  if (matrix.rows == 0 || matrix.columns == 0) return 0;
  // Differences of addresses are signed.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (matrix.pitch > most / size_of(type) / matrix.rows)
    throw refusal(fmt::format("{} has {} rows of {} elements of {}, over the limit of {} bytes",
                              which, matrix.rows, matrix.pitch, type_names.name(type), most));
  if (matrix.data == nullptr)
    throw refusal(fmt::format("{} is null and has {} rows and {} columns", which, matrix.rows,
                              matrix.columns));
  if (const auto over = reinterpret_cast<std::uintptr_t>(matrix.data) % size_of(type); over != 0)
    throw refusal(fmt::format("{} begins {} bytes behind an element of {}, which has {} bytes",
                              which, over, type_names.name(type), size_of(type)));
  return ((matrix.rows - 1) * matrix.pitch + matrix.columns) * size_of(type);
}

void check_shapes(const MatmulCall& call, MatmulLayout layout) {
  const bool is_kn = layout == MatmulLayout::kn;
  const std::size_t depth = is_kn ? call.b.rows : call.b.columns;
  const std::size_t columns = is_kn ? call.b.columns : call.b.rows;
  if (call.gated && columns % 2 != 0)
    throw refusal(fmt::format("gated columns are pairs, and B has {}", columns));
  if (call.a.rows == call.d.rows && call.a.columns == depth &&
      (call.gated ? columns / 2 : columns) == call.d.columns)
    return;
  throw refusal(fmt::format(
      "D has {} rows and {} columns; A of {} × {} times B of {} × {}, stored as {}{}, does not "
      "make that",
      call.d.rows, call.d.columns, call.a.rows, call.a.columns, call.b.rows, call.b.columns,
      name(layout), call.gated ? " and gated" : ""));
}

/// Throws unless no byte of D is also the input's.
void check_apart(const MatmulOperand& d, std::size_t d_bytes, const char* which, const void* input,
                 std::size_t bytes) {
  const auto out = reinterpret_cast<std::uintptr_t>(d.data);
  const auto in = reinterpret_cast<std::uintptr_t>(input);
  if (d_bytes == 0 || bytes == 0 || out + d_bytes <= in || in + bytes <= out) return;
  throw refusal(fmt::format("D ({} bytes at {:#x}) overlaps {} ({} bytes at {:#x})", d_bytes, out,
                            which, bytes, in));
}

/// A row of elements that the epilogue reads.
void check_row(const MatmulCall& call, std::size_t d_bytes, const char* which, const void* data,
               std::size_t count, MatmulType type) {
  if (data == nullptr) return;
  check_apart(call.d, d_bytes, which, data, span_bytes(which, {data, 1, count, count}, type));
}

void check_scales(const MatmulCall& call, std::size_t d_bytes, const char* which,
                  const MatmulScales& scales, std::size_t count) {
  if (scales.each && scales.data == nullptr && count != 0)
    throw refusal(fmt::format("{} are null, and {} are asked for", which, count));
  check_row(call, d_bytes, which, scales.data, scales.each ? count : 1, MatmulType::fp32);
}

void check_residual(const MatmulCall& call, std::size_t d_bytes) {
  const MatmulOperand& residual = call.residual;
  if (residual.data == nullptr && residual.rows == 0 && residual.columns == 0) return;
  if (residual.rows != call.d.rows || residual.columns != call.d.columns)
    throw refusal(fmt::format("D has {} rows and {} columns, and the residual {} and {}",
                              call.d.rows, call.d.columns, residual.rows, residual.columns));
  const std::size_t bytes = span_bytes("the residual", residual, call.result);
  if (residual.data != call.d.data || residual.pitch != call.d.pitch)
    check_apart(call.d, d_bytes, "the residual", residual.data, bytes);
}

template <class Enum>
void check_enumerator(const char* what, Enum value, std::size_t count) {
  if (const auto number = static_cast<std::size_t>(value); number >= count)
    throw refusal(fmt::format("there is no {} with number {}", what, number));
}

void check(const MatmulCall& call, const MatmulOptions& options) {
  check_enumerator("layout of B", options.layout, layouts.size());
  check_enumerator("activation", call.activation, activations.size());
  check_enumerator("direction of a bias", call.bias_along, 2);
  if (options.tf32 && call.type != MatmulType::fp32)
    throw refusal(fmt::format("tf32 is for matrices of fp32, not {}", type_names.name(call.type)));
  check_shapes(call, options.layout);
  const std::size_t d_bytes = span_bytes("D", call.d, call.result);
  check_apart(call.d, d_bytes, "A", call.a.data, span_bytes("A", call.a, call.type));
  check_apart(call.d, d_bytes, "B", call.b.data, span_bytes("B", call.b, call.type));
  const std::size_t columns = call.gated ? 2 * call.d.columns : call.d.columns;
  check_scales(call, d_bytes, "A's scales", call.a_scales, call.d.rows);
  check_scales(call, d_bytes, "B's scales", call.b_scales, columns);
  check_row(call, d_bytes, "the bias", call.bias,
            call.bias_along == MatmulBias::rows ? call.d.rows : columns, call.result);
  check_residual(call, d_bytes);
}

Epilogue epilogue_of(const MatmulCall& call) {
  return {.a_scales = call.a_scales.data,
          .b_scales = call.b_scales.data,
          .bias = call.bias,
          .residual = call.residual.data,
          .residual_pitch = call.residual.pitch,
          .scale = call.scale,
          .scales_rows = call.a_scales.each,
          .scales_columns = call.b_scales.each,
          .bias_along_rows = call.bias_along == MatmulBias::rows,
          .gated = call.gated,
          .activation = call.activation,
          .is_identity = call.scale == 1 && call.a_scales.data == nullptr &&
                         call.b_scales.data == nullptr && call.bias == nullptr && !call.gated &&
                         call.activation == MatmulActivation::none &&
                         call.residual.data == nullptr};
}

void launch(const Problem& problem, MatmulAlgorithm algorithm) {
  if (is_hopper(algorithm)) return launch_hopper_product(problem, algorithm);
  if (algorithm == MatmulAlgorithm::narrow) return launch_narrow_product(problem);
  launch_simple_product(problem);
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

std::span<const MatmulActivation> matmul_activations() {
  return activations;
}
std::string_view name(MatmulActivation activation) {
  return activation_names.name(activation);
}
MatmulActivation parse_matmul_activation(std::string_view text) {
  return activation_names.parse(text);
}

KernelList matmul_kernels() {
  KernelList list;
  for (const KernelList& some :
       {simple_product_kernels(), narrow_product_kernels(), hopper_product_kernels()})
    list.insert(list.end(), some.begin(), some.end());
  return list;
}

void detail::matmul(StreamRef& stream, const MatmulCall& call, const MatmulOptions& options) {
  check(call, options);
  const Problem problem = {.stream = stream,
                           .type = call.type,
                           .result = call.result,
                           .d = call.d_data,
                           .a = call.a.data,
                           .b = call.b.data,
                           .rows = call.d.rows,
                           .columns = call.gated ? 2 * call.d.columns : call.d.columns,
                           .depth = call.a.columns,
                           .d_pitch = call.d.pitch,
                           .a_pitch = call.a.pitch,
                           .b_pitch = call.b.pitch,
                           .layout = options.layout,
                           .tf32 = options.tf32,
                           .epilogue = epilogue_of(call),
                           .processors = Access::stream(stream).processors()};
  if (const Objection objection = object_to_algorithm(options.algorithm, problem))
    throw Error(objection.code, "matmul: " + objection.reason);
  if (problem.rows == 0 || problem.columns == 0) return;
  // Without K there is nothing to multiply: the simple loop has sums of zero.
  if (problem.depth == 0) return launch_simple_product(problem);
  launch(problem, options.algorithm == MatmulAlgorithm::automatic
                      ? choose_algorithm(problem, options.invariant)
                      : options.algorithm);
}

}  // namespace iridium
