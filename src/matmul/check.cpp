#include "matmul/check.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "base/names.h"
#include "matmul/choice.h"

namespace iridium {
namespace {

using detail::MatmulCall;
using detail::MatmulOperand;

constexpr Names<MatmulType, 4> type_names = {"type", {"fp16", "bf16", "fp32", "e4m3"}};

/// Each function throws what the operation refuses.
class CallCheck {
 public:
  CallCheck(const char* operation, const MatmulCall& call) : operation_(operation), call_(call) {}

  void check(const MatmulOptions& options) {
    check_enumerator("layout of B", options.layout, matmul_layouts().size());
    check_enumerator("activation", call_.activation, matmul_activations().size());
    check_enumerator("direction of a bias", call_.bias_along, 2);
    if (options.tf32 && call_.type != MatmulType::fp32)
      throw refusal(
          fmt::format("tf32 is for matrices of fp32, not {}", type_names.name(call_.type)));
    check_shapes(options.layout);
    d_bytes_ = span_bytes("D", call_.d, call_.result);
    check_apart("A", call_.a.data, span_bytes("A", call_.a, call_.type));
    check_apart("B", call_.b.data, span_bytes("B", call_.b, call_.type));
    const std::size_t columns = call_.gated ? 2 * call_.d.columns : call_.d.columns;
    check_scales("A's scales", call_.a_scales, call_.d.rows);
    check_scales("B's scales", call_.b_scales, columns);
    check_row("the bias", call_.bias, call_.bias_along == MatmulBias::rows ? call_.d.rows : columns,
              call_.result);
    check_residual();
  }

 private:
  Error refusal(const std::string& reason) const {
    return {Errc::invalid_argument, fmt::format("{}: {}", operation_, reason)};
  }

  template <class Enum>
  void check_enumerator(const char* what, Enum value, std::size_t count) const {
    if (const auto number = static_cast<std::size_t>(value); number >= count)
      throw refusal(fmt::format("there is no {} with number {}", what, number));
  }

  void check_shapes(MatmulLayout layout) const {
    const MatmulOperand& d = call_.d;
    const MatmulOperand& a = call_.a;
    const MatmulOperand& b = call_.b;
    const bool is_kn = layout == MatmulLayout::kn;
    const std::size_t depth = is_kn ? b.rows : b.columns;
    const std::size_t columns = is_kn ? b.columns : b.rows;
    if (call_.gated && columns % 2 != 0)
      throw refusal(fmt::format("gated columns are pairs, and B has {}", columns));
    if (a.rows == d.rows && a.columns == depth &&
        (call_.gated ? columns / 2 : columns) == d.columns)
      return;
    throw refusal(fmt::format(
        "D has {} rows and {} columns; A of {} × {} times B of {} × {}, stored as {}{}, does not "
        "make that",
        d.rows, d.columns, a.rows, a.columns, b.rows, b.columns, name(layout),
        call_.gated ? " and gated" : ""));
  }

  /// The bytes from a matrix's first element to behind its last.
  std::size_t span_bytes(const char* which, const MatmulOperand& matrix, MatmulType type) const {
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

  /// No byte of D is also the input's.
  void check_apart(const char* which, const void* input, std::size_t bytes) const {
    const auto out = reinterpret_cast<std::uintptr_t>(call_.d.data);
    const auto in = reinterpret_cast<std::uintptr_t>(input);
    if (d_bytes_ == 0 || bytes == 0 || out + d_bytes_ <= in || in + bytes <= out) return;
    throw refusal(fmt::format("D ({} bytes at {:#x}) overlaps {} ({} bytes at {:#x})", d_bytes_,
                              out, which, bytes, in));
  }

  /// A row of elements that the epilogue reads.
  void check_row(const char* which, const void* data, std::size_t count, MatmulType type) const {
    if (data != nullptr) check_apart(which, data, span_bytes(which, {data, 1, count, count}, type));
  }

  void check_scales(const char* which, const MatmulScales& scales, std::size_t count) const {
    if (scales.each && scales.data == nullptr && count != 0)
      throw refusal(fmt::format("{} are null, and {} are asked for", which, count));
    check_row(which, scales.data, scales.each ? count : 1, MatmulType::fp32);
  }

  void check_residual() const {
    const MatmulOperand& residual = call_.residual;
    if (residual.data == nullptr && residual.rows == 0 && residual.columns == 0) return;
    if (residual.rows != call_.d.rows || residual.columns != call_.d.columns)
      throw refusal(fmt::format("D has {} rows and {} columns, and the residual {} and {}",
                                call_.d.rows, call_.d.columns, residual.rows, residual.columns));
    const std::size_t bytes = span_bytes("the residual", residual, call_.result);
    if (residual.data != call_.d.data || residual.pitch != call_.d.pitch)
      check_apart("the residual", residual.data, bytes);
  }

  const char* operation_;
  const MatmulCall& call_;
  std::size_t d_bytes_ = 0;
};

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

}  // namespace

Problem unchecked_problem(StreamRef& stream, const MatmulCall& call, const MatmulOptions& options) {
  return {.stream = stream,
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
          .processors = detail::Access::stream(stream).processors()};
}

Problem checked_problem(const char* operation, StreamRef& stream, const MatmulCall& call,
                        const MatmulOptions& options) {
  CallCheck(operation, call).check(options);
  const Problem problem = unchecked_problem(stream, call, options);
  if (const Objection objection = object_to_algorithm(options.algorithm, problem))
    throw Error(objection.code, fmt::format("{}: {}", operation, objection.reason));
  return problem;
}

}  // namespace iridium
