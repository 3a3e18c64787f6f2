#include "cli/sweep/children.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <set>
#include <string>
#include <vector>

namespace ferry::cli {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> sh(const std::string& script) { return {"/bin/sh", "-c", script}; }

ChildEnd end_of(const std::vector<std::string>& command, std::chrono::milliseconds limit = 0ms) {
  Children children;
  children.start(7, command, limit);
  for (;;) {
    const std::vector<ChildEnd> ended = children.wait(1s);
    if (!ended.empty()) return ended.front();
  }
}

TEST(ChildrenTest, AChildsTextsAndItsCodeAreTold) {
  const ChildEnd end = end_of(sh("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(end.number, 7u);
  EXPECT_EQ(end.out, "out\n");
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(WEXITSTATUS(end.status), 3);
  EXPECT_FALSE(end.late);
}

TEST(ChildrenTest, ALongTextIsReadWhileTheChildWritesIt) {
  EXPECT_EQ(end_of(sh("head -c 300000 /dev/zero")).out.size(), 300'000u);
}

TEST(ChildrenTest, OfWhatIsWrongTheBeginningIsKept) {
  EXPECT_EQ(end_of(sh("head -c 300000 /dev/zero >&2")).err.size(), 4096u);
}

TEST(ChildrenTest, ACrashIsASignal) {
  const ChildEnd end = end_of(sh("kill -SEGV $$"));
  EXPECT_TRUE(WIFSIGNALED(end.status));
  EXPECT_EQ(WTERMSIG(end.status), SIGSEGV);
}

TEST(ChildrenTest, AChildThatTakesTooLongIsKilledWithAllThatItStarted) {
  // The second process holds the pipes, and would hold them for a minute.
  const auto start = Children::Clock::now();
  const ChildEnd end = end_of(sh("sleep 60 & sleep 60"), 50ms);
  EXPECT_TRUE(end.late);
  EXPECT_LT(Children::Clock::now() - start, 10s);
}

TEST(ChildrenTest, AChildThatLeavesAProcessBehindHasEnded) {
  const auto start = Children::Clock::now();
  const ChildEnd end = end_of(sh("echo done; sleep 60 &"));
  EXPECT_EQ(end.out, "done\n");
  EXPECT_EQ(end.status, 0);
  EXPECT_LT(Children::Clock::now() - start, 10s);
}

TEST(ChildrenTest, AProgramThatIsNotThereEndsWith127) {
  const ChildEnd end = end_of({"/no/such/program"});
  EXPECT_EQ(WEXITSTATUS(end.status), 127);
  EXPECT_EQ(end.err, "cannot run the program\n");
}

TEST(ChildrenTest, SeveralEndInAnyOrder) {
  Children children;
  for (std::uint64_t i = 0; i < 5; ++i) children.start(i, sh("echo " + std::to_string(i)), 0ms);
  EXPECT_EQ(children.running(), 5u);
  std::set<std::string> texts;
  while (children.running() > 0) {
    for (const ChildEnd& end : children.wait(1s)) {
      EXPECT_EQ(end.out, std::to_string(end.number) + "\n");
      texts.insert(end.out);
    }
  }
  EXPECT_EQ(texts.size(), 5u);
}

}  // namespace
}  // namespace ferry::cli
