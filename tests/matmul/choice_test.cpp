// What `automatic` is, on devices that are not here.
#include "matmul/choice.h"

#include <gtest/gtest.h>

#include "iridium/context.h"
#include "iridium/matmul_choice.h"
#include "matmul/launch.h"
#include "matmul/product_type.h"
#include "matmul/row.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using enum MatmulAlgorithm;

constexpr Processors h200 = {.count = 132, .capability = 90};
constexpr Processors a100 = {.count = 108, .capability = 80};
constexpr Processors cpu = {};

class MatmulChoice : public testing::Test {
 protected:
  /// A dense product at aligned addresses.
  Problem problem(const Processors& processors, std::size_t rows, std::size_t columns,
                  std::size_t depth, MatmulLayout layout = MatmulLayout::nk) {
    const bool is_kn = layout == MatmulLayout::kn;
    return {.stream = stream_,
            .type = MatmulType::bf16,
            .result = MatmulType::bf16,
            .d = memory_,
            .a = memory_,
            .b = memory_,
            .rows = rows,
            .columns = columns,
            .depth = depth,
            .d_pitch = columns,
            .a_pitch = depth,
            .b_pitch = is_kn ? columns : depth,
            .layout = layout,
            .processors = processors};
  }

  Context context_{{.heap_bytes = std::size_t{64} << 20}};
  Stream stream_ = context_.make_stream();
  alignas(16) std::byte memory_[32] = {};
};

TEST_F(MatmulChoice, IsWhatTheFirstRowSaysThatCanDoIt) {
  Processors device = h200;
  device.backend = BackendKind::cuda;
  device.device = "NVIDIA H200";
  const auto by_row = [&](const Problem& problem, const char* rows) {
    return choose_by_row(problem, TuningTable(rows));
  };
  const Problem half = problem(device, 8, 256, 64);
  EXPECT_EQ(by_row(half, ""), automatic);
  EXPECT_EQ(by_row(half, "matmul bf16 nk NVIDIA_H200 8 256 64 simple"), simple);
  EXPECT_EQ(by_row(half, "matmul bf16 nk cuda 8 256 64 narrow"), narrow);
  for (const char* other :
       {"matmul fp16 nk cuda * * * simple", "matmul bf16 kn cuda * * * simple",
        "matmul bf16 nk host * * * simple", "matmul bf16 nk NVIDIA_H100 * * * simple",
        "matmul bf16 nk cuda 7 * * simple", "matmul bf16 nk cuda * 255 * simple",
        "matmul bf16 nk cuda * * 63 simple"})
    EXPECT_EQ(by_row(half, other), automatic) << other;
  const char* narrow_first = "matmul * * * * * * narrow\nmatmul * * * * * * simple";
  EXPECT_EQ(by_row(half, narrow_first), narrow);
  EXPECT_EQ(by_row(problem(device, 17, 256, 64), narrow_first), simple);
  EXPECT_EQ(by_row(problem(cpu, 8, 256, 64), narrow_first), simple);
  test::expect_error(Errc::invalid_argument, [&] { by_row(half, "matmul * * * * * * fastest"); });
}

TEST_F(MatmulChoice, NamesTypesAsRowsDo) {
  Problem of_floats = problem(cpu, 8, 256, 64);
  of_floats.type = of_floats.result = MatmulType::fp32;
  EXPECT_EQ(name(product_type(of_floats)), "fp32");
  of_floats.tf32 = true;
  EXPECT_EQ(name(product_type(of_floats)), "tf32");
  for (const ProductType type : product_types()) EXPECT_EQ(parse_product_type(name(type)), type);
}

TEST_F(MatmulChoice, CanBeAskedForWithoutMatrices) {
  for (const ProductType type : product_types())
    for (const MatmulLayout layout : matmul_layouts()) {
      const auto choice = choose_matmul(stream_, {17, 24, 40}, name(type), layout);
      if (context_.backend() == BackendKind::host) {
        const Problem same = problem(cpu, 17, 24, 40, layout);
        if (type == ProductType::bf16) {
          EXPECT_EQ(choice.algorithm, choose_algorithm(same, false));
        }
        EXPECT_FALSE(choice.by_row);
      }
    }
  test::expect_error(Errc::invalid_argument,
                     [&] { choose_matmul(stream_, {17, 24, 40}, "int8", MatmulLayout::nk); });
}

TEST_F(MatmulChoice, IsTheFastestOfWhatWasMeasured) {
  if (!has_hopper_kernels) GTEST_SKIP() << "no code for Hopper in this build";
  for (const MatmulLayout layout : matmul_layouts()) {
    const auto choice = [&](std::size_t rows, std::size_t columns, std::size_t depth) {
      return choose_algorithm(problem(h200, rows, columns, depth, layout), false);
    };
    const bool is_nk = layout == MatmulLayout::nk;
    EXPECT_EQ(choice(1, 3584, 8192), is_nk ? narrow : hopper_64x128_k4);
    EXPECT_EQ(choice(16, 3584, 8192), is_nk ? narrow : hopper_64x128_k4);
    EXPECT_EQ(choice(64, 3584, 8192), hopper_64x128_k4);
    EXPECT_EQ(choice(256, 3584, 8192), hopper_128x128_k2);
    EXPECT_EQ(choice(1024, 3584, 8192), hopper_128x256);
    EXPECT_EQ(choice(4096, 3584, 8192), hopper_128x128);
    EXPECT_EQ(choice(16384, 3584, 8192), hopper_128x256);
    EXPECT_EQ(choice(4096, 4096, 4096), hopper_128x256);
    EXPECT_EQ(choice(4096, 11008, 4096), hopper_128x128);
    EXPECT_EQ(choice(4096, 14336, 4096), hopper_128x256);
    EXPECT_EQ(choice(8192, 8192, 8192), hopper_128x256);
  }
}

TEST_F(MatmulChoice, IsOneForAllRowsWhereItMustBe) {
  for (const std::size_t rows : {1u, 16u, 64u, 1024u, 16384u}) {
    EXPECT_EQ(choose_algorithm(problem(h200, rows, 3584, 8192), true),
              has_hopper_kernels ? hopper_128x128 : tiled);
    EXPECT_EQ(choose_algorithm(problem(a100, rows, 3584, 8192), true), tiled);
    EXPECT_EQ(choose_algorithm(problem(cpu, rows, 3584, 8192), true), tiled);
  }
}

TEST_F(MatmulChoice, IsWhatTheDeviceHas) {
  EXPECT_EQ(choose_algorithm(problem(cpu, 1, 64, 64), false), tiled);
  EXPECT_EQ(choose_algorithm(problem(cpu, 256, 64, 64), false), tiled);
  EXPECT_EQ(choose_algorithm(problem(a100, 1, 64, 64), false), narrow);
  EXPECT_EQ(choose_algorithm(problem(a100, 1, 64, 64, MatmulLayout::kn), false), tiled);
  EXPECT_EQ(choose_algorithm(problem(a100, 256, 64, 64), false), tiled);
}

TEST_F(MatmulChoice, DoesNotDependOnAddresses) {
  for (const std::size_t rows : {1u, 64u, 4096u}) {
    const Problem aligned = problem(h200, rows, 3584, 8192);
    Problem other = aligned;
    other.a = memory_ + 2;
    other.b = memory_ + 4;
    other.d = memory_ + 6;
    other.a_pitch = other.b_pitch = 8195;
    EXPECT_EQ(choose_algorithm(other, false), choose_algorithm(aligned, false));
    EXPECT_EQ(choose_algorithm(other, true), choose_algorithm(aligned, true));
  }
}

TEST_F(MatmulChoice, DependsOnTypes) {
  if (!has_hopper_kernels) GTEST_SKIP() << "no code for Hopper in this build";
  const auto choice = [&](MatmulType type, MatmulLayout layout, bool tf32, std::size_t rows) {
    Problem of_type = problem(h200, rows, 3584, 8192, layout);
    of_type.type = type;
    of_type.tf32 = tf32;
    return choose_algorithm(of_type, false);
  };
  constexpr auto kn = MatmulLayout::kn;
  constexpr auto nk = MatmulLayout::nk;
  for (const std::size_t rows : {1u, 16384u}) {
    EXPECT_EQ(choice(MatmulType::fp32, nk, false, rows), tiled);
    EXPECT_EQ(choice(MatmulType::fp32, kn, true, rows), tiled);
    EXPECT_EQ(choice(MatmulType::e4m3, kn, false, rows), simple);
  }
  EXPECT_EQ(choice(MatmulType::fp32, nk, true, 1), hopper_64x128_k4);
  EXPECT_EQ(choice(MatmulType::fp32, nk, true, 16384), hopper_128x256);
  EXPECT_EQ(choice(MatmulType::e4m3, nk, false, 1), hopper_64x128_k4);
  EXPECT_EQ(choice(MatmulType::e4m3, nk, false, 16384), hopper_128x128);
}

TEST_F(MatmulChoice, HasReasonsAgainstTypes) {
  if (!has_hopper_kernels) GTEST_SKIP() << "no code for Hopper in this build";
  const auto reason = [&](MatmulAlgorithm algorithm, MatmulType type, MatmulLayout layout) {
    Problem of_type = problem(h200, 8, 3584, 8192, layout);
    of_type.type = type;
    return object_to_algorithm(algorithm, of_type).reason;
  };
  EXPECT_EQ(reason(narrow, MatmulType::e4m3, MatmulLayout::nk), "narrow is for fp16 and bf16");
  EXPECT_EQ(reason(hopper_64x128, MatmulType::fp32, MatmulLayout::nk),
            "hopper_64x128 takes fp32 where tf32 is allowed");
  EXPECT_EQ(reason(hopper_64x128, MatmulType::e4m3, MatmulLayout::kn),
            "hopper_64x128 takes fp32 and e4m3 with B stored as nk");
  EXPECT_EQ(reason(hopper_128x256, MatmulType::e4m3, MatmulLayout::nk),
            "hopper_128x256 does not take e4m3");
  EXPECT_EQ(reason(tiled, MatmulType::e4m3, MatmulLayout::nk), "tiled does not take e4m3");
}

TEST_F(MatmulChoice, TakesCublasForWhatItCanDoAndOnlyWhereARowSaysSo) {
  const auto reason = [](const Problem& what) { return object_to_algorithm(cublas, what); };
  Problem what = problem(cpu, 16, 64, 64);
  if (context_.backend() == BackendKind::host) {
    const Objection missing = reason(what);
    EXPECT_EQ(missing.code, Errc::unsupported);
    EXPECT_NE(missing.reason.find("cublas cannot run here: it is for NVIDIA GPUs"),
              std::string::npos)
        << missing.reason;
    const TuningTable rows("matmul * * * * * * cublas\nmatmul * * * * * * simple");
    EXPECT_EQ(choose_by_row(what, rows), simple) << "what is not there is passed over";
  }
  EXPECT_NE(choose_algorithm(what, false), cublas);
  Problem of_e4m3 = what;
  of_e4m3.type = MatmulType::e4m3;
  EXPECT_EQ(reason(of_e4m3).reason, "cublas does not take e4m3");
  Problem finished = what;
  finished.epilogue.is_identity = false;
  EXPECT_EQ(reason(finished).reason, "cublas takes no epilogue");
  EXPECT_EQ(reason(finished).code, Errc::invalid_argument);
  constexpr std::size_t over = std::size_t{1} << 31;
  EXPECT_NE(reason(problem(cpu, over, 64, 64)).reason.find("M up to 2147483647, not 2147483648"),
            std::string::npos);
  what.b_pitch = over;
  EXPECT_NE(reason(what).reason.find("the pitch of B up to"), std::string::npos);
}

TEST_F(MatmulChoice, HasHopperOnHopperAlone) {
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    if (!is_hopper(algorithm)) continue;
    const Objection on_a100 = object_to_algorithm(algorithm, problem(a100, 256, 64, 64));
    EXPECT_EQ(on_a100.code, Errc::unsupported);
    EXPECT_NE(on_a100.reason.find("9.0, not 8.0"), std::string::npos) << on_a100.reason;
    const Objection on_h200 = object_to_algorithm(algorithm, problem(h200, 256, 64, 64));
    EXPECT_EQ(on_h200.reason.empty(), has_hopper_kernels) << on_h200.reason;
  }
  if (!has_hopper_kernels) return;
  const Objection too_many =
      object_to_algorithm(hopper_128x256, problem(h200, 2'000'000'001, 64, 64));
  EXPECT_NE(too_many.reason.find("up to 2000000000, not 2000000001"), std::string::npos)
      << too_many.reason;
}

}  // namespace
}  // namespace iridium
