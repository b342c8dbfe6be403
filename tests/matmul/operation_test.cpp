// The registry's case of products: what it launches, and that its check sees what is wrong.
#include "matmul/operation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "iridium/matmul.h"
#include "iridium/matmul_shape.h"
#include "support/ranks.h"

namespace iridium::test {
namespace {

class MatmulOperation : public testing::Test {
 protected:
  std::unique_ptr<OperationCase> prepare(const Arguments& arguments) {
    return matmul_operation().prepare(context_, context_.world(), arguments);
  }

  /// Prepared, and launched once with the inputs of `seed`.
  std::unique_ptr<OperationCase> launch(const Arguments& arguments, std::uint64_t seed) {
    auto prepared = prepare(arguments);
    prepared->set_inputs(seed);
    prepared->launch(stream_);
    stream_.synchronize();
    return prepared;
  }

  template <class T>
  T read(OperationCase& prepared, std::size_t element) {
    T value;
    stream_.copy(&value, prepared.outputs().data() + element * sizeof(T), sizeof(T));
    stream_.synchronize();
    return value;
  }
  template <class T>
  void write(OperationCase& prepared, std::size_t element, T value) {
    stream_.copy(prepared.outputs().data() + element * sizeof(T), &value, sizeof(T));
    stream_.synchronize();
  }

  Context context_{{.heap_bytes = std::size_t{256} << 20}};
  Stream stream_ = context_.make_stream();
};

TEST_F(MatmulOperation, HasAllAlgorithmsAndLayoutsAndSeveralShapes) {
  std::map<std::string, std::vector<std::string>> values;
  const Operation operation = matmul_operation();
  for (const Parameter& parameter : operation.parameters) values[parameter.name] = parameter.values;
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values["algorithm"].size(), matmul_algorithms().size());
  EXPECT_EQ(values["algorithm"].front(), "automatic");
  EXPECT_EQ(values["layout"], (std::vector<std::string>{"nk", "kn"}));
  EXPECT_EQ(values["dtype"], (std::vector<std::string>{"bf16", "fp16", "fp32", "tf32", "e4m3"}));
  EXPECT_GE(values["shape"].size(), 2u);
  for (const std::string& shape : values["shape"])
    EXPECT_LE(parse_matmul_shape(shape).flops(), 2e6) << shape << ": tests walk all of them";
}

TEST_F(MatmulOperation, IsRightInEveryTypeAndLayout) {
  for (const Arguments& arguments : combinations(matmul_operation())) {
    if (arguments.at("algorithm") != "automatic" && arguments.at("algorithm") != "simple") continue;
    const auto prepared = launch(arguments, 7);
    EXPECT_EQ(prepared->check(7), "") << arguments.at("shape");
    EXPECT_NE(prepared->check(8), "") << "the result of other inputs";
    EXPECT_EQ(prepared->flops(), parse_matmul_shape(arguments.at("shape")).flops());
    EXPECT_EQ(prepared->bytes(), 0u);
    EXPECT_EQ(prepared->chosen().empty(), arguments.at("algorithm") != "automatic");
  }
}

TEST_F(MatmulOperation, LaunchesWhatItsArgumentsSay) {
  // The same inputs lie otherwise in memory, so that another layout is another product.
  const auto nk = launch({{"shape", "3x4x5"}, {"layout", "nk"}}, 1);
  const auto kn = launch({{"shape", "3x4x5"}, {"layout", "kn"}}, 1);
  ASSERT_EQ(nk->outputs().size(), 3u * 4 * sizeof(bf16));
  int different = 0;
  for (std::size_t i = 0; i < 12; ++i)
    if (read<bf16>(*nk, i).bits != read<bf16>(*kn, i).bits) ++different;
  EXPECT_GT(different, 6);
}

template <class T>
T moved(T value, double distance) {
  return T(static_cast<float>(static_cast<double>(static_cast<float>(value)) + distance));
}

TEST_F(MatmulOperation, RefusesAndNamesOneWrongElement) {
  // What the check tolerates of 264 terms below 1 is less than `distance`.
  const auto expect_refused = [&]<class D>(D, const char* dtype, double distance) {
    for (const char* layout : {"nk", "kn"}) {
      const auto prepared =
          launch({{"shape", "16x72x264"}, {"layout", layout}, {"dtype", dtype}}, 3);
      for (const std::size_t element : {0u, 500u, 16u * 72 - 1}) {
        const D right = read<D>(*prepared, element);
        for (const double by : {distance, -distance, std::nan("")}) {
          write(*prepared, element, moved(right, by));
          EXPECT_TRUE(prepared->check(3).starts_with(fmt::format("output {} is ", element)))
              << dtype << ": " << prepared->check(3);
        }
        write(*prepared, element, right);
        EXPECT_EQ(prepared->check(3), "");
      }
    }
  };
  expect_refused(fp16(), "fp16", 0.06);
  expect_refused(bf16(), "bf16", 0.4);
  expect_refused(float(), "fp32", 0.01);
  expect_refused(float(), "tf32", 0.01);
  expect_refused(bf16(), "e4m3", 0.8);
}

TEST_F(MatmulOperation, NamesTheFirstOfSeveralWrongElements) {
  // Terms enough for threads to share them.
  const auto prepared = launch({{"shape", "130x136x160"}}, 3);
  for (const std::size_t element : {17'000u, 9'000u, 400u}) {
    write(*prepared, element, bf16(99.f));
    EXPECT_TRUE(prepared->check(3).starts_with(fmt::format("output {} is 99", element)))
        << prepared->check(3);
  }
}

TEST_F(MatmulOperation, RefusesWhatNobodyHasWritten) {
  const auto prepared = prepare({{"shape", "5x7x9"}});
  prepared->set_inputs(1);
  EXPECT_EQ(prepared->check(1), "output 0 is nan");
}

TEST_F(MatmulOperation, ChecksASampleOfLargeProductsAndEverySeedAnother) {
  // 2^26 terms: a check looks at every third element.
  const auto prepared = prepare({{"shape", "256x256x1024"}});
  int seen = 0;
  for (const std::uint64_t seed : {2u, 3u, 4u}) {
    prepared->set_inputs(seed);
    prepared->launch(stream_);
    stream_.synchronize();
    ASSERT_EQ(prepared->check(seed), "");
    write(*prepared, 30'000, bf16(999.f));
    if (!prepared->check(seed).empty()) ++seen;
    bf16 nan;
    nan.bits = 0xffff;
    write(*prepared, 30'000, nan);
    EXPECT_EQ(prepared->check(seed), "output 30000 is nan") << "all are looked at for that";
  }
  EXPECT_EQ(seen, 1);
}

TEST_F(MatmulOperation, IsUnsupportedWhereTheDeviceOrTheProductDoesNotSuit) {
  expect_error(Errc::invalid_argument, [&] { prepare({{"dtype", "int32"}}); });
  // Hopper's kernels take fp32 where tf32 is allowed.
  expect_error(Errc::unsupported,
               [&] { prepare({{"dtype", "fp32"}, {"algorithm", "hopper_64x128"}}); });
  expect_error(Errc::unsupported, [&] { prepare({{"shape", "33x8x8"}, {"algorithm", "narrow"}}); });
}

TEST_F(MatmulOperation, AGraphKeepsItsMatrices) {
  std::optional<Graph> graph;
  const std::byte* kept = nullptr;
  {
    const auto prepared = prepare({{"shape", "64x64x64"}});
    stream_.begin_capture();
    prepared->launch(stream_);
    graph = stream_.end_capture();
    kept = prepared->outputs().data();
  }
  const auto place = [&] {
    return reinterpret_cast<const std::byte*>(context_.allocate<bf16>(64 * 64).data());
  };
  EXPECT_GT(place(), kept) << "behind D, which is the last one";
  graph.reset();
  EXPECT_LT(place(), kept) << "where A was";
}

}  // namespace
}  // namespace iridium::test
