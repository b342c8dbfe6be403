#include "iridium/matmul_shape.h"

#include <gtest/gtest.h>

#include "iridium/errors.h"

namespace iridium {
namespace {

TEST(MatmulShapes, AreWrittenAsTheyAreRead) {
  for (const char* text : {"4096x3584x8192", "1x1x1", "16x264x1000", "1073741824x1x2"})
    EXPECT_EQ(name(parse_matmul_shape(text)), text);
  const MatmulShape shape = parse_matmul_shape("2x3x5");
  EXPECT_EQ(shape, (MatmulShape{.rows = 2, .columns = 3, .depth = 5}));
  EXPECT_EQ(shape.flops(), 60);
  EXPECT_EQ(shape.elements(), 2u * 5 + 5 * 3 + 2 * 3);
}

TEST(MatmulShapes, AreRefusedWithAnExample) {
  for (const char* text : {"",         "x",
                           "xx",       "4",
                           "4x4",      "4x4x",
                           "x4x4",     "4x4x4x4",
                           "4x4x4x",   "0x4x4",
                           "4x0x4",    "4x4x0",
                           "-1x4x4",   "4X4X4",
                           "4x4x4 ",   "4 x 4 x 4",
                           "4,4,4",    "4x4x1073741825",
                           "4Kx4x4",   "99999999999999999999x1x1",
                           "automatic"})
    try {
      const MatmulShape shape = parse_matmul_shape(text);
      ADD_FAILURE() << text << " is " << name(shape);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      const std::string message = error.what();
      EXPECT_NE(message.find("'" + std::string(text) + "'"), std::string::npos) << message;
      EXPECT_NE(message.find("such as 4096x3584x8192"), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace iridium
