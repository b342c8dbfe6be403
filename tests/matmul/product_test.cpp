// Products against sums in double. On a GPU when IRIDIUM_BACKEND says so.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <limits>
#include <stdexcept>

#include "matmul/operands.h"

namespace iridium::test {
namespace {

ContextOptions options() {
  return {.heap_bytes = std::size_t{64} << 20};
}

/// Zeroed memory that ends where a page begins that nobody may touch.
class BeforeGuard {
 public:
  explicit BeforeGuard(std::size_t bytes) : bytes_(bytes) {
    pages_ = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes > page || pages_ == MAP_FAILED || mprotect(behind(), page, PROT_NONE) != 0)
      throw std::runtime_error("no memory with a guard behind it");
  }
  ~BeforeGuard() { munmap(pages_, 2 * page); }
  BeforeGuard(const BeforeGuard&) = delete;
  BeforeGuard& operator=(const BeforeGuard&) = delete;

  template <class T>
  T* at() const {
    return reinterpret_cast<T*>(behind() - bytes_);
  }

 private:
  static constexpr std::size_t page = 4096;

  std::byte* behind() const { return static_cast<std::byte*>(pages_) + page; }

  std::size_t bytes_;
  void* pages_;
};

/// Every algorithm that can, with all types and both layouts.
void check(Context& context, ProductCase product, std::uint32_t seed) {
  Stream stream = context.make_stream();
  for (const MatmulLayout layout : matmul_layouts()) {
    product.layout = layout;
    for_all_types([&]<class T, class D>(T, D) {
      Operands<T, D> operands(context, product, seed);
      for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
        if (!has_algorithm(stream, algorithm) || !takes<T>(algorithm, product)) continue;
        operands.renew(++seed);
        operands.multiply(stream, options_of<T>(algorithm));
        const std::string error = operands.find_error(stream, is_coarse<T>(algorithm));
        EXPECT_EQ(error, "") << name(algorithm) << ", " << type_name<T>() << ", "
                             << describe(product);
      }
    });
  }
}

TEST(Matmul, IsRightForShapesAroundEveryTile) {
  Context context(options());
  for (const std::size_t rows : {1u, 8u, 16u, 17u, 64u, 65u, 129u, 257u})
    check(context, {.shape = {rows, 136, 72}}, static_cast<std::uint32_t>(rows));
  for (const std::size_t columns : {1u, 8u, 31u, 64u, 128u, 129u, 256u, 264u})
    check(context, {.shape = {9, columns, 64}}, static_cast<std::uint32_t>(columns));
  for (const std::size_t depth : {1u, 7u, 8u, 16u, 63u, 64u, 65u, 128u, 1000u, 1032u})
    check(context, {.shape = {33, 40, depth}}, static_cast<std::uint32_t>(depth));
}

TEST(Matmul, IsRightWhereBlocksTakeSeveralTiles) {
  Context context(options());
  // On a CPU with fewer blocks than tiles; on a GPU narrow's blocks have 32 rows of B each.
  check(context, {.shape = {100, 1100, 64}}, 1);
  check(context, {.shape = {16, 4300, 192}}, 2);
}

TEST(Matmul, OfManyTilesOnAGpu) {
  Context context(options());
  if (context.backend() == BackendKind::host) GTEST_SKIP() << "takes long on a CPU";
  check(context, {.shape = {1500, 2056, 456}}, 3);
  check(context, {.shape = {2100, 1000, 328}}, 4);
}

TEST(Matmul, WithoutDepthIsZero) {
  Context context(options());
  check(context, {.shape = {33, 40, 0}}, 1);
  check(context, {.shape = {1, 1, 0}, .d = {.padding = 3}}, 1);
}

TEST(Matmul, WithoutRowsOrColumnsWritesNothing) {
  Context context(options());
  check(context, {.shape = {0, 40, 64}}, 1);
  check(context, {.shape = {33, 0, 64}}, 1);
  Stream stream = context.make_stream();
  matmul(stream, Matrix<bf16>(), Matrix<const bf16>(), Matrix<const bf16>());
  stream.synchronize();
}

TEST(Matmul, KeepsToPitches) {
  Context context(options());
  for (const std::size_t padding : {8u, 24u})
    check(context,
          {.shape = {70, 136, 128},
           .d = {.padding = padding},
           .a = {.padding = 2 * padding},
           .b = {.padding = 3 * padding}},
          1);
  // Rows at addresses for 16-byte accesses, and K no multiple of 8.
  check(context,
        {.shape = {70, 133, 125}, .d = {.padding = 3}, .a = {.padding = 3}, .b = {.padding = 3}},
        2);
  check(context,
        {.shape = {70, 131, 125}, .d = {.padding = 2}, .a = {.padding = 1}, .b = {.padding = 5}},
        3);
}

TEST(Matmul, TakesAnyAddress) {
  Context context(options());
  for (const std::size_t offset : {1u, 2u, 4u, 7u, 8u}) {
    check(context, {.shape = {20, 136, 72}, .d = {.offset = offset}}, 1);
    check(context, {.shape = {20, 136, 72}, .a = {.offset = offset}}, 2);
    check(context, {.shape = {20, 136, 72}, .b = {.offset = offset}}, 3);
    check(context, {.shape = {16, 40, 72}, .d = {.offset = offset}}, 4);
  }
}

TEST(Matmul, MakesFp16OfE4m3) {
  Context context(options());
  Stream stream = context.make_stream();
  const ProductCase product = {.shape = {70, 136, 200}, .layout = MatmulLayout::nk};
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    if (!has_algorithm(stream, algorithm) || !takes<e4m3>(algorithm, product)) continue;
    Operands<e4m3, fp16> operands(context, product, 1);
    operands.multiply(stream, {.algorithm = algorithm});
    EXPECT_EQ(operands.find_error(stream, is_coarse<e4m3>(algorithm)), "") << name(algorithm);
  }
}

TEST(Matmul, MultipliesFloatsInFullUnlessTf32IsAllowed) {
  Context context(options());
  Stream stream = context.make_stream();
  for (const MatmulLayout layout : matmul_layouts()) {
    Operands<float> operands(context, {.shape = {70, 136, 200}, .layout = layout}, 1);
    operands.multiply(stream, {});
    EXPECT_EQ(operands.find_error(stream), "") << name(layout);
  }
}

TEST(Matmul, ReplaysWithWhatIsThere) {
  Context context(options());
  Stream stream = context.make_stream();
  for (const MatmulLayout layout : matmul_layouts())
    for_all_types([&]<class T, class D>(T, D) {
      for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
        const ProductCase product = {
            .shape = {16, 136, 200}, .layout = layout, .finish = {.bias = Finish::Bias::columns}};
        if (!has_algorithm(stream, algorithm) || !takes<T>(algorithm, product)) continue;
        Operands<T, D> operands(context, product, 1);
        stream.begin_capture();
        operands.multiply(stream, options_of<T>(algorithm));
        const Graph graph = stream.end_capture();
        EXPECT_NE(operands.find_error(stream), "") << "recorded, not run";
        for (std::uint32_t seed = 2; seed < 5; ++seed) {
          operands.renew(seed);
          stream.launch(graph);
          EXPECT_EQ(operands.find_error(stream, is_coarse<T>(algorithm)), "")
              << name(algorithm) << ", " << type_name<T>() << ", " << name(layout);
        }
      }
    });
}

TEST(Matmul, IsRightHoweverBlocksTakeTurns) {
  for (const bool split : {false, true}) {
    Context context({.heap_bytes = std::size_t{64} << 20,
                     .split_blocks = split,
                     .schedule_seed = std::uint64_t{7}});
    check(context, {.shape = {70, 300, 96}}, 1);
  }
}

/// Each lies right before memory that nobody may touch.
TEST(Matmul, ReadsNothingBehindItsOperands) {
  Context context({.backend = BackendKind::host});
  Stream stream = context.make_stream();
  constexpr std::size_t rows = 5;
  constexpr std::size_t columns = 11;
  constexpr std::size_t depth = 13;
  for (const MatmulLayout layout : matmul_layouts())
    for_all_types([&]<class T, class D>(T, D) {
      const BeforeGuard d(rows * columns * sizeof(D));
      const BeforeGuard a(rows * depth * sizeof(T));
      const BeforeGuard b(depth * columns * sizeof(T));
      const BeforeGuard bias(columns * sizeof(D));
      const BeforeGuard scales(rows * sizeof(float));
      const bool is_kn = layout == MatmulLayout::kn;
      const std::size_t pitch = is_kn ? columns : depth;
      matmul(stream, Matrix<D>{d.at<D>(), rows, columns, columns},
             Matrix<const T>{a.at<T>(), rows, depth, depth},
             Matrix<const T>{b.at<T>(), is_kn ? depth : columns, pitch, pitch}, {.layout = layout},
             {.a_scales = {scales.at<float>(), true}, .bias = bias.at<D>()});
      stream.synchronize();
    });
}

TEST(Matmul, KeepsInfinitiesAndNaN) {
  Context context(options());
  Stream stream = context.make_stream();
  for (const MatmulAlgorithm algorithm : matmul_algorithms()) {
    const ProductCase product = {.shape = {2, 8, 64}, .layout = MatmulLayout::nk};
    if (!has_algorithm(stream, algorithm) || !takes<bf16>(algorithm, product)) continue;
    Operands<bf16> operands(context, product, 1);
    const auto write = [&](std::size_t row, float value) {
      const bf16 element(value);
      stream.copy(const_cast<bf16*>(operands.a().at(row, 3)), &element, sizeof element);
      stream.synchronize();
    };
    write(0, std::numeric_limits<float>::infinity());
    write(1, std::numeric_limits<float>::quiet_NaN());
    operands.multiply(stream, {.algorithm = algorithm});
    const std::vector<std::uint32_t> bits = operands.result(stream);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(bits[i] & 0x7fff, 0x7f80) << name(algorithm);
      EXPECT_GT(bits[8 + i] & 0x7fff, 0x7f80) << name(algorithm);
    }
  }
}

}  // namespace
}  // namespace iridium::test
