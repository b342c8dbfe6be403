#include "iridium/errors.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/system_error.h"

namespace iridium {
namespace {

constexpr int code_count = static_cast<int>(Errc::system) + 1;

TEST(Errors, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code < code_count; ++code) {
    const std::string_view text = name(static_cast<Errc>(code));
    EXPECT_NE(text, "unknown") << code;
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
    names.insert(text);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(code_count));
}

TEST(Errors, NamesAreThoseOfTheEnumerators) {
  EXPECT_EQ(name(Errc::invalid_argument), "invalid_argument");
  EXPECT_EQ(name(Errc::peer_lost), "peer_lost");
  EXPECT_EQ(name(Errc::capture_unsupported), "capture_unsupported");
  EXPECT_EQ(name(Errc::system), "system");
}

TEST(Errors, CarryCodeMessageAndRanks) {
  for (int code = 0; code < code_count; ++code) {
    const auto errc = static_cast<Errc>(code);
    const Error error(errc, "the reason", {2, 5});
    EXPECT_EQ(error.code(), errc);
    EXPECT_EQ(error.what(), std::string(name(errc)) + ": the reason");
    EXPECT_EQ(error.ranks(), (std::vector<int>{2, 5}));
  }
}

TEST(Errors, HaveNoRanksUnlessGiven) {
  EXPECT_TRUE(Error(Errc::timeout, "late").ranks().empty());
}

TEST(SystemErrors, SayWhatWasTriedAndWhyItFailed) {
  errno = ENOENT;
  const Error error = system_error("cannot open it");
  EXPECT_EQ(error.code(), Errc::system);
  EXPECT_STREQ(error.what(), "system: cannot open it: No such file or directory");
}

TEST(SystemErrors, SayHowToRaiseTheLimitOfDescriptors) {
  errno = EMFILE;
  const std::string own = system_error("cannot open it").what();
  EXPECT_TRUE(own.starts_with("system: cannot open it: Too many open files (this process may have"))
      << own;
  EXPECT_NE(own.find("ulimit -n"), std::string::npos) << own;
  errno = ENFILE;
  const std::string machines = system_error("cannot open it").what();
  EXPECT_NE(machines.find("fs.file-max"), std::string::npos) << machines;
}

TEST(SystemErrors, AreShortagesWhereTryingAgainMayHelp) {
  for (const int code : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
    errno = code;
    EXPECT_THROW(throw_system_error("socket"), Shortage);
  }
  errno = EACCES;
  try {
    throw_system_error("socket");
  } catch (const Shortage&) {
    FAIL() << "no permission comes by itself";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "system: socket: Permission denied");
  }
}

}  // namespace
}  // namespace iridium
