#include "cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "command.h"
#include "iridium/errors.h"

namespace iridium::cli {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OutputFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "out.json") const { return folder_ / name; }

 private:
  fs::path folder_;
};

TEST_F(OutputFiles, AreWrittenAsAWhole) {
  std::ofstream(path()) << "before";
  const std::string text = std::string(1 << 20, 'x') + "end";
  {
    const OutputFile file(path());
    EXPECT_EQ(text_of(path()), "before");
    file.write(text);
    EXPECT_EQ(text_of(path()), text);
  }
  EXPECT_EQ(count_files_like(path()), 1);
}

TEST_F(OutputFiles, HaveNoNameBeforeTheyAreWritten) {
  const OutputFile file(path());
  EXPECT_EQ(count_files_like(path()), 0) << "a command that is killed leaves nothing";
  file.write("ours");
  EXPECT_EQ(count_files_like(path()), 1);
}

TEST_F(OutputFiles, ThatAreNotWrittenLeaveNothing) {
  {
    const OutputFile file(path());
  }
  EXPECT_EQ(count_files_like(path()), 0);
}

TEST_F(OutputFiles, TouchNothingThatLiesBesideThem) {
  std::ofstream(path("others")) << "theirs";
  fs::create_symlink(path("others"), path() + ".part");
  OutputFile(path()).write("ours");
  EXPECT_EQ(text_of(path("others")), "theirs");
  EXPECT_TRUE(fs::is_symlink(path() + ".part"));
  EXPECT_EQ(text_of(path()), "ours");
}

TEST_F(OutputFiles, OfTwoCommandsAtOnceAreBothWhole) {
  const OutputFile first(path());
  OutputFile(path()).write("second");
  EXPECT_EQ(text_of(path()), "second");
  first.write("first");
  EXPECT_EQ(text_of(path()), "first");
}

TEST_F(OutputFiles, AreWrittenWhereALinkLeads) {
  std::ofstream(path("elsewhere")) << "before";
  fs::create_symlink(path("elsewhere"), path());
  OutputFile(path()).write("there");
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_EQ(text_of(path("elsewhere")), "there");
}

TEST_F(OutputFiles, SayWhyTheyCannotBeWritten) {
  fs::create_symlink(path("ring"), path("ring"));
  const std::pair<std::string, const char*> cases[] = {
      {path("none/out.json"), "No such file or directory"},
      {path(std::string(300, 'x')), "File name too long"},
      {path("ring"), "Too many levels of symbolic links"}};
  for (const auto& [nowhere, reason] : cases) {
    try {
      const OutputFile file(nowhere);
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), "system: cannot write to " + nowhere + ": " + reason);
    }
  }
}

}  // namespace
}  // namespace iridium::cli
