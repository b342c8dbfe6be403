// Tile products in kernels of a test's own, against plain loops. On a GPU when IRIDIUM_BACKEND says
// so.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/block_modes.h"
#include "device/tile_product_kernels.h"

namespace iridium::test {
namespace {

/// Where a matrix lies: elements.
struct Placing {
  std::size_t offset = 0;   ///< behind an address that 128 divides
  std::size_t padding = 0;  ///< of each row
};

/// A matrix in a context's memory. What lies around it is NaN, and of integers −1.
template <class T>
class Placed {
 public:
  Placed(Context& context, std::size_t rows, std::size_t columns, const Placing& placing = {})
      : memory_(
            context.allocate<T>(2 * guard + placing.offset + rows * (columns + placing.padding))),
        matrix_{memory_.data() + guard + placing.offset, rows, columns, columns + placing.padding},
        values_(memory_.size()) {
    std::memset(values_.data(), 0xff, memory_.bytes());
  }

  /// value(row, column) everywhere.
  template <class Value>
  void set(StreamRef& stream, Value value) {
    for (std::size_t row = 0; row < matrix_.rows; ++row)
      for (std::size_t column = 0; column < matrix_.columns; ++column)
        at(row, column) = value(row, column);
    stream.copy(memory_.data(), values_.data(), memory_.bytes());
    stream.synchronize();
  }
  void get(StreamRef& stream) {
    stream.copy(values_.data(), memory_.data(), memory_.bytes());
    stream.synchronize();
  }
  T& at(std::size_t row, std::size_t column) {
    return values_[static_cast<std::size_t>(matrix_.at(row, column) - memory_.data())];
  }
  /// Whether what lies around is as it was.
  bool is_framed() const {
    std::vector<bool> is_element(values_.size());
    for (std::size_t row = 0; row < matrix_.rows; ++row)
      for (std::size_t column = 0; column < matrix_.columns; ++column)
        is_element[static_cast<std::size_t>(matrix_.at(row, column) - memory_.data())] = true;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::vector<unsigned char> bytes(sizeof(T));
      std::memcpy(bytes.data(), &values_[i], sizeof(T));
      if (!is_element[i] && bytes != std::vector<unsigned char>(sizeof(T), 0xff)) return false;
    }
    return true;
  }
  const Matrix<T>& matrix() const { return matrix_; }

 private:
  static constexpr std::size_t guard = 64;

  SymmetricArray<T> memory_;
  Matrix<T> matrix_;
  std::vector<T> values_;
};

struct Sizes {
  std::size_t rows;
  std::size_t columns;
  std::size_t depth;
};
struct Places {
  Placing d = {};
  Placing a = {};
  Placing b = {};
};

/// A product's matrices, with whole numbers in A and B: sums of them are exact.
template <class T>
struct Example {
  Example(Context& context, const Sizes& of, MatmulLayout as, const Places& places = {})
      : sizes(of),
        layout(as),
        d(context, of.rows, of.columns, places.d),
        seen(context, of.rows, of.columns),
        a(context, of.rows, of.depth, places.a),
        b(context, is_nk() ? of.columns : of.depth, is_nk() ? of.depth : of.columns, places.b),
        stream(context.make_stream()) {
    a.set(stream, [&](std::size_t row, std::size_t k) { return T(a_value(row, k)); });
    b.set(stream, [&](std::size_t row, std::size_t column) {
      return T(is_nk() ? b_value(column, row) : b_value(row, column));
    });
  }

  bool is_nk() const { return layout == MatmulLayout::nk; }
  static float a_value(std::size_t row, std::size_t k) {
    return static_cast<float>((row * 7 + k * 3) % 9) - 4;
  }
  static float b_value(std::size_t k, std::size_t column) {
    return static_cast<float>((k * 5 + column * 11) % 13) - 6;
  }

  void multiply(const Context& context, int shape, ProductForm form = ProductForm::run,
                int blocks = 2) {
    d.set(stream, [](std::size_t, std::size_t) { return -1e30f; });
    seen.set(stream, [](std::size_t, std::size_t) { return 0; });
    run_tile_product<T>(context, stream, blocks,
                        {shape, layout, form, d.matrix(), seen.matrix(), a.matrix(), b.matrix()});
    d.get(stream);
    seen.get(stream);
  }
  void expect_right() {
    ASSERT_TRUE(d.is_framed());
    for (std::size_t row = 0; row < sizes.rows; ++row)
      for (std::size_t column = 0; column < sizes.columns; ++column) {
        float sum = 0;
        for (std::size_t k = 0; k < sizes.depth; ++k) sum += a_value(row, k) * b_value(k, column);
        ASSERT_EQ(d.at(row, column), sum) << "at " << row << ", " << column;
        ASSERT_EQ(seen.at(row, column), 11) << "at " << row << ", " << column;
      }
  }

  Sizes sizes;
  MatmulLayout layout;
  Placed<float> d;
  Placed<int> seen;
  Placed<T> a;
  Placed<T> b;
  Stream stream;
};

std::string describe(const Sizes& sizes, int shape, MatmulLayout layout) {
  return std::to_string(sizes.rows) + " x " + std::to_string(sizes.columns) + " x " +
         std::to_string(sizes.depth) + ", shape " + std::to_string(shape) +
         (layout == MatmulLayout::nk ? ", nk" : ", kn");
}

template <class T>
class TileProducts : public testing::Test {
 protected:
  /// use(shape, layout) for all there are.
  template <class Use>
  static void for_all(Use use) {
    for (int shape = 0; shape < product_shapes; ++shape)
      for (const MatmulLayout layout : {MatmulLayout::kn, MatmulLayout::nk}) use(shape, layout);
  }
  static void check(Context& context, const Sizes& sizes, const Places& places = {}) {
    for_all([&](int shape, MatmulLayout layout) {
      SCOPED_TRACE(describe(sizes, shape, layout));
      Example<T> example(context, sizes, layout, places);
      example.multiply(context, shape);
      example.expect_right();
    });
  }
};
using ProductNumbers = testing::Types<fp16, bf16, float>;
TYPED_TEST_SUITE(TileProducts, ProductNumbers);

TYPED_TEST(TileProducts, AreRightInEveryMode) {
  in_every_mode([&](Context& context) {
    this->check(context, {128, 128, 128});
    this->check(context, {131, 77, 101});
    this->check(context, {1, 1, 1});
    this->check(context, {17, 33, 0});
  });
}

TYPED_TEST(TileProducts, AreRightAroundEveryEdge) {
  Context context({.heap_bytes = std::size_t{32} << 20});
  for (const std::size_t rows : {15u, 16u, 17u, 63u, 65u, 129u})
    this->check(context, {rows, 40, 24});
  for (const std::size_t columns : {1u, 2u, 31u, 32u, 63u, 127u, 129u})
    this->check(context, {20, columns, 24});
  for (const std::size_t depth : {1u, 7u, 8u, 15u, 17u, 31u, 32u, 33u, 64u, 95u, 160u, 200u})
    this->check(context, {20, 40, depth});
}

TYPED_TEST(TileProducts, TakeMatricesAnywhere) {
  in_every_mode([&](Context& context) {
    constexpr Sizes sizes = {40, 72, 64};
    this->check(context, sizes, {.d = {.offset = 1, .padding = 2}});
    this->check(context, sizes, {.d = {.padding = 1}, .a = {.offset = 1}, .b = {.padding = 1}});
    this->check(context, sizes, {.a = {.padding = 3}, .b = {.offset = 3}});
    this->check(context, {40, 71, 61}, {.a = {.padding = 3}, .b = {.padding = 1}});
  });
}

TYPED_TEST(TileProducts, CanBeMadeCallByCall) {
  in_every_mode([&](Context& context) {
    this->for_all([&](int shape, MatmulLayout layout) {
      for (const ProductForm form : {ProductForm::by_calls, ProductForm::added})
        for (const Sizes& sizes : {Sizes{70, 50, 300}, {33, 40, 24}}) {
          SCOPED_TRACE(describe(sizes, shape, layout));
          Example<TypeParam> example(context, sizes, layout);
          example.multiply(context, shape, form);
          example.expect_right();
        }
    });
  });
}

TYPED_TEST(TileProducts, HaveTheSameBitsWhereverTheyLie) {
  in_every_mode([&](Context& context) {
    this->for_all([&](int shape, MatmulLayout layout) {
      constexpr Sizes sizes = {70, 48, 208};
      // Sums that round differently in another order.
      const auto results = [&](const Sizes& of, const Places& places) {
        Example<TypeParam> example(context, of, layout, places);
        const auto fill = [&](auto& matrix, std::uint32_t seed) {
          std::mt19937 random(seed);
          std::uniform_real_distribution<float> values(-1, 1);
          matrix.set(example.stream,
                     [&](std::size_t, std::size_t) { return TypeParam(values(random)); });
        };
        fill(example.a, 1);
        fill(example.b, 2);
        example.multiply(context, shape);
        std::vector<float> all;
        for (std::size_t row = 0; row < of.rows; ++row)
          for (std::size_t column = 0; column < of.columns; ++column)
            all.push_back(example.d.at(row, column));
        return all;
      };
      std::vector<float> expected = results(sizes, {});
      EXPECT_EQ(results(sizes, {.a = {.offset = 1}, .b = {.offset = 1}}), expected);
      EXPECT_EQ(results(sizes, {.d = {.padding = 1}, .a = {.padding = 3}, .b = {.padding = 5}}),
                expected);
      // Fewer rows are the first ones of more.
      for (const std::size_t rows : {17u, 16u, 1u}) {
        expected.resize(rows * sizes.columns);
        EXPECT_EQ(results({rows, sizes.columns, sizes.depth}, {}), expected);
      }
    });
  });
}

TYPED_TEST(TileProducts, KeepInfinitiesAtTheEdges) {
  Context context({.heap_bytes = std::size_t{32} << 20});
  this->for_all([&](int shape, MatmulLayout layout) {
    constexpr Sizes sizes = {17, 33, 21};
    Example<TypeParam> example(context, sizes, layout);
    example.a.set(example.stream, [](std::size_t, std::size_t) {
      return TypeParam(std::numeric_limits<float>::infinity());
    });
    example.b.set(example.stream, [](std::size_t, std::size_t) { return TypeParam(1.0f); });
    example.multiply(context, shape);
    for (std::size_t row = 0; row < sizes.rows; ++row)
      for (std::size_t column = 0; column < sizes.columns; ++column)
        ASSERT_EQ(example.d.at(row, column), std::numeric_limits<float>::infinity());
  });
}

}  // namespace
}  // namespace iridium::test
