// cuBLAS as it is opened and called, with a library in its place that multiplies on the CPU.
#include "backend/cuda/cublas.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cuda/fake_cublas.h"
#include "iridium/errors.h"
#include "support/ranks.h"

namespace iridium {
namespace {

using Words = std::vector<std::string>;

class CublasTest : public testing::Test {
 protected:
  CublasTest() {
    void* const library = ::dlopen(FAKE_CUBLAS_PATH, RTLD_NOW | RTLD_LOCAL);
    fake_ = reinterpret_cast<test::FakeCublas* (*)()>(::dlsym(library, "fake_cublas"))();
    *fake_ = {};
  }

  void* allocate(std::size_t bytes) {
    allocated_ += bytes;
    memory_.emplace_back(64);
    return memory_.back().data();
  }

  /// None that could be used.
  cudaStream_t stream(std::size_t number) {
    static char places[8];
    return reinterpret_cast<cudaStream_t>(&places[number]);
  }

  test::FakeCublas* fake_;
  std::size_t allocated_ = 0;
  std::vector<std::vector<char>> memory_;
  CublasPool pool_{open_cublas(FAKE_CUBLAS_PATH),
                   [this](std::size_t bytes) { return allocate(bytes); }};
};

/// A product with gaps behind every row, which must stay as they are.
template <class T>
void expect_product(const CublasLoan& loan, DataType type, bool b_along_k) {
  constexpr std::size_t rows = 3;
  constexpr std::size_t columns = 5;
  constexpr std::size_t depth = 7;
  const std::size_t b_rows = b_along_k ? columns : depth;
  const std::size_t b_pitch = (b_along_k ? depth : columns) + 4;
  std::vector<T> a(rows * (depth + 2));
  std::vector<T> b(b_rows * b_pitch);
  std::vector<T> d(rows * (columns + 1), T(99.f));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = T(static_cast<float>(i % 13) - 6);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = T(static_cast<float>(i % 11) - 5);
  loan.multiply({.type = type,
                 .tf32 = false,
                 .b_along_k = b_along_k,
                 .d = d.data(),
                 .a = a.data(),
                 .b = b.data(),
                 .rows = rows,
                 .columns = columns,
                 .depth = depth,
                 .d_pitch = columns + 1,
                 .a_pitch = depth + 2,
                 .b_pitch = b_pitch});
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < depth; ++k)
        sum += static_cast<float>(a[row * (depth + 2) + k]) *
               static_cast<float>(b_along_k ? b[column * b_pitch + k] : b[k * b_pitch + column]);
      EXPECT_EQ(static_cast<float>(d[row * (columns + 1) + column]), sum)
          << name(type) << ", row " << row << ", column " << column << ", " << b_along_k;
    }
    EXPECT_EQ(static_cast<float>(d[row * (columns + 1) + columns]), 99);
  }
}

TEST_F(CublasTest, MultipliesRowByRowInEitherLayoutAndEveryType) {
  const auto loan = pool_.lend(stream(1));
  for (const bool b_along_k : {false, true}) {
    expect_product<fp16>(*loan, DataType::fp16, b_along_k);
    expect_product<bf16>(*loan, DataType::bf16, b_along_k);
    expect_product<float>(*loan, DataType::fp32, b_along_k);
  }
  EXPECT_EQ(fake_->compute, CUBLAS_COMPUTE_32F);
}

/// One element times itself, in place.
LibraryProduct square_of(float* value, bool tf32) {
  return {.type = DataType::fp32,
          .tf32 = tf32,
          .b_along_k = false,
          .d = value,
          .a = value,
          .b = value,
          .rows = 1,
          .columns = 1,
          .depth = 1,
          .d_pitch = 1,
          .a_pitch = 1,
          .b_pitch = 1};
}

TEST_F(CublasTest, UsesTf32OnlyWhereItIsAllowed) {
  const auto loan = pool_.lend(stream(1));
  float value = 2;
  loan->multiply(square_of(&value, true));
  EXPECT_EQ(fake_->compute, CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST_F(CublasTest, WorksInMemoryThatIsSetBehindTheStream) {
  const auto loan = pool_.lend(stream(7));
  EXPECT_EQ(fake_->calls, (Words{"Create", "SetMathMode", "SetStream", "SetWorkspace"}));
  EXPECT_EQ(fake_->stream, stream(7));
  EXPECT_EQ(fake_->workspace, memory_.at(0).data());
  EXPECT_EQ(fake_->workspace_bytes, CublasPool::workspace_bytes);
  EXPECT_EQ(allocated_, CublasPool::workspace_bytes);
  EXPECT_TRUE(fake_->math_mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  fake_->calls.clear();
  expect_product<float>(*loan, DataType::fp32, true);
  EXPECT_EQ(fake_->calls, Words{"GemmEx"}) << "a product sets nothing up";
}

struct Work final : Marker {
  bool reached() const override { return is_done; }
  bool is_done = false;
};

TEST_F(CublasTest, LendsAHandleAgainWhenTheWorkOfItsStreamIsDone) {
  auto first = pool_.lend(stream(1));
  const auto second = pool_.lend(stream(2));
  EXPECT_EQ(fake_->handles, 2) << "one for each stream";
  const auto work = std::make_shared<Work>();
  first->keep_until(work);
  first.reset();
  const auto third = pool_.lend(stream(3));
  EXPECT_EQ(fake_->handles, 3) << "the first one's work still runs";
  work->is_done = true;
  fake_->calls.clear();
  const auto fourth = pool_.lend(stream(4));
  EXPECT_EQ(fake_->handles, 3);
  EXPECT_EQ(fake_->calls, (Words{"SetStream", "SetWorkspace"}));
  EXPECT_EQ(fake_->workspace, memory_.at(0).data());
  EXPECT_EQ(allocated_, 3 * CublasPool::workspace_bytes);
}

TEST_F(CublasTest, SaysWhatItDoesNotTake) {
  const auto loan = pool_.lend(stream(1));
  fake_->answer = CUBLAS_STATUS_NOT_SUPPORTED;
  float value = 2;
  const Error error =
      test::expect_error(Errc::system, [&] { loan->multiply(square_of(&value, false)); });
  EXPECT_NE(std::string(error.what()).find("cannot multiply: fake: not supported"),
            std::string::npos)
      << error.what();
}

TEST_F(CublasTest, IsUnsupportedWhereItIsNotOrIsAnotherLibrary) {
  const Error missing =
      test::expect_error(Errc::unsupported, [] { open_cublas("/nowhere/libcublas.so"); });
  EXPECT_NE(std::string(missing.what()).find("IRIDIUM_CUBLAS"), std::string::npos);
  EXPECT_NE(std::string(missing.what()).find("/nowhere/libcublas.so"), std::string::npos);
  const Error other = test::expect_error(Errc::unsupported, [] { open_cublas("libm.so.6"); });
  EXPECT_NE(std::string(other.what()).find("libm.so.6, has no cublasCreate_v2"), std::string::npos)
      << other.what();
}

}  // namespace
}  // namespace iridium
