#include <gtest/gtest.h>

#include <set>
#include <string>

#include "backend/backend.h"
#include "support/ranks.h"

namespace iridium {
namespace {

TEST(BackendRegistry, DescribesEveryBackendOnce) {
  std::set<BackendKind> kinds;
  for (const BackendInfo& info : describe_backends()) {
    EXPECT_TRUE(kinds.insert(info.kind).second) << name(info.kind);
    EXPECT_EQ(info.reason.empty(), info.available) << name(info.kind);
  }
  EXPECT_EQ(kinds, (std::set{BackendKind::host, BackendKind::cuda, BackendKind::hip}));
}

TEST(BackendRegistry, HasTheHostBackendAlways) {
  EXPECT_TRUE(describe_backends().back().available);
  EXPECT_EQ(describe_backends().back().kind, BackendKind::host);
  EXPECT_EQ(make_backend({.kind = BackendKind::host})->kind(), BackendKind::host);
}

TEST(BackendRegistry, ChoosesTheFirstThatIsAvailable) {
  for (const BackendInfo& info : describe_backends()) {
    if (!info.available) continue;
    EXPECT_EQ(make_backend({})->kind(), info.kind);
    return;
  }
  FAIL() << "no backend is available";
}

TEST(BackendRegistry, RefusesABackendThatIsOffWithTheReason) {
  for (const BackendInfo& info : describe_backends()) {
    if (info.available) continue;
    const Error error =
        test::expect_error(Errc::unsupported, [&] { make_backend({.kind = info.kind}); });
    const std::string message = error.what();
    EXPECT_NE(message.find(name(info.kind)), std::string::npos) << message;
    EXPECT_NE(message.find(info.reason), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace iridium
