#include "formats/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <system_error>
#include <thread>

#include "formats/text_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("ferry_atomic_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, AFileIsWrittenWhole) {
  write_file(folder_ / "a", "one");
  write_file(folder_ / "a", "two");
  EXPECT_EQ(read_file(folder_ / "a"), "two");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, NothingIsLeftWithoutCommit) {
  write_file(folder_ / "a", "old");
  {
    AtomicFile file(folder_ / "a");
    file.write("new");
    EXPECT_EQ(read_file(folder_ / "a"), "old");
  }
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(files(), 1);
}

// A second Ctrl-C ends the program where it stands, and left "a.Xy12ab" behind.
TEST_F(AtomicFileTest, AKilledProcessLeavesNothing) {
  const int unnamed = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "no files without a name on this file system";
  ::close(unnamed);
  write_file(folder_ / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder_ / "a");
    file.write("new");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AResultIsAsReadableAsOtherFiles) {
  const mode_t mask = ::umask(0027);
  write_file(folder_ / "a", "new");
  ::umask(mask);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), static_cast<fs::perms>(0640));
}

// As /dev/stdout is where a shell pipes it on: the link's text, "pipe:[123]", is no path.
TEST_F(AtomicFileTest, ALinkMayLeadToAPipe) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  write_file("/dev/fd/" + std::to_string(ends[1]), "through");
  ::close(ends[1]);
  char read[16] = {};
  EXPECT_EQ(::read(ends[0], read, sizeof(read)), 7);
  EXPECT_STREQ(read, "through");
  ::close(ends[0]);
}

TEST_F(AtomicFileTest, NothingIsLeftWhereTheRenameFails) {
  fs::create_directory(folder_ / "a");  // no file can be renamed over a folder
  EXPECT_THROW(write_file(folder_ / "a", "new"), std::system_error);
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, ALinkLeadsToTheFile) {
  write_file(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  fs::remove(folder_ / "a");
  write_file(folder_ / "link", "again");
  EXPECT_EQ(read_file(folder_ / "a"), "again");
  EXPECT_EQ(files(), 2);
}

TEST_F(AtomicFileTest, WhatIsNoFileStaysWhatItIs) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = read_file(pipe); });
  write_file(pipe, "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, NothingIsLeftWhereTheDiskIsFull) {
  write_file(folder_ / "a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // then the write fails with EFBIG
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_file(folder_ / "a", std::string(100'000, 'x')), std::system_error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(folder_ / "a"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFolderThatIsNotThereIsNamed) {
  try {
    write_file(folder_ / "none" / "a", "new");
    FAIL() << "expected an error";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("none/a"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ferry
