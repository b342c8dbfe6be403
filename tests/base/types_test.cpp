#include "iridium/types.h"

#include <gtest/gtest.h>

#include <string>

#include "iridium/version.h"
#include "support/ranks.h"

namespace iridium {
namespace {

TEST(Backends, AreParsedByTheirNames) {
  for (const BackendKind kind : {BackendKind::host, BackendKind::cuda, BackendKind::hip})
    EXPECT_EQ(parse_backend(name(kind)), kind) << name(kind);
  EXPECT_EQ(name(BackendKind::host), "host");
  EXPECT_EQ(name(BackendKind::cuda), "cuda");
  EXPECT_EQ(name(BackendKind::hip), "hip");
}

TEST(Backends, UnknownOnesAreRefusedWithTheKnownNames) {
  for (const std::string text : {"", "Host", "HOST", "rocm", "host ", " cuda", "hip2"}) {
    const Error error = test::expect_error(Errc::invalid_argument, [&] { parse_backend(text); });
    const std::string message = error.what();
    EXPECT_NE(message.find("'" + text + "'"), std::string::npos) << message;
    EXPECT_NE(message.find("host, cuda or hip"), std::string::npos) << message;
  }
}

TEST(Version, IsTheHeadersVersion) {
  EXPECT_STREQ(version(), IR_VERSION);
}

}  // namespace
}  // namespace iridium
