// A sweep over MPI's ranks. Without MPI, what a Ferry without it says to a launcher's rank.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/cli/console/terminal.h"
#include "tests/cli/plan_folder.h"
#include "tests/cli/sweep/stop_folder.h"

namespace ferry::cli {
namespace {

#ifdef FERRY_MPIRUN

// Where a rank ends with another code than 0, mpirun waits some seconds before it kills the others.
std::string mpirun(int ranks, const std::string& patience = "0") {
  return FERRY_MPIRUN " --mca odls_base_sigkill_timeout " + patience +
         " --allow-run-as-root --oversubscribe -n " + std::to_string(ranks);
}

class HandOutTest : public PlanFolder {
 protected:
  HandOutTest() {
    write("s.toml", R"(programs = ["chain.jsonl", "blocks.jsonl"]
hardware = ["tiny.toml"]
budgets = ["card", "2%", "1%"]
policies = ["keep", "offload", "mixed"]
[[skip]]
programs = ["chain.jsonl"]
policies = ["mixed"]
)");
  }
  Result swept(const std::string& launcher, const std::string& file) const {
    return shell(
        "cd '" + path("").string() + "' && " + launcher + " '" FERRY_PROGRAM "' sweep " + file,
        path("mpi").string());
  }
};

TEST_F(HandOutTest, TheBytesAreTheSameForAnyNumberOfRanks) {
  const Result alone = swept("", "s.toml -o r.jsonl");
  const std::string whole = read("r.jsonl");
  for (const int ranks : {1, 2, 4, 7}) {
    std::filesystem::remove(path("r.jsonl"));
    const Result result = swept(mpirun(ranks), "s.toml -o r.jsonl");
    EXPECT_EQ(read("r.jsonl"), whole) << ranks;
    EXPECT_EQ(result.out, alone.out) << ranks;  // once, not by every rank
    EXPECT_EQ(result.code, alone.code) << result.err;
  }
}

TEST_F(HandOutTest, EachRankRunsSeveralItemsWhereItIsAsked) {
  swept("", "s.toml -o one.jsonl");
  swept(mpirun(2), "s.toml -o r.jsonl --jobs 3");
  EXPECT_EQ(read("r.jsonl"), read("one.jsonl"));
}

TEST_F(HandOutTest, BadInputIsToldOnceAndAllRanksEnd) {
  write("s.toml", "programs = 7\n");
  const Result result = swept(mpirun(3), "s.toml -o r.jsonl");
  EXPECT_EQ(result.code, kUsage);
  const std::string message = "ferry: s.toml:1: expected programs: a list of strings\n";
  EXPECT_EQ(result.err.find(message), result.err.rfind(message));
  EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
}

class LostRankTest : public StopFolder {
 protected:
  LostRankTest() : StopFolder("best", "adamw", "66GiB") {}
  // Until the two short items are done, and the long one runs.
  void wait_for_lines() const {
    while (lines() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(LostRankTest, ARankThatIsLostEndsTheJobAndItGoesOn) {
  Terminal job(sweep("", mpirun(2)));
  wait_for_lines();
  ::kill(wait_for_child_of(job.process(), "OMPI_COMM_WORLD_RANK=1"), SIGKILL);
  EXPECT_NE(job.end(), 0) << job.shown();
  EXPECT_EQ(lines(), 2u);
  EXPECT_TRUE(results().ends_with("\"}\n"));
  Terminal on(sweep("--limit 0.1"));
  EXPECT_EQ(on.end(), 1);  // the third item, the only one that runs, is late
  EXPECT_NE(on.shown().find("2 items are done, 1 to do"), std::string::npos) << on.shown();
  EXPECT_EQ(lines(), 3u);
}

TEST_F(LostRankTest, ASchedulersSigtermLeavesAWholeFile) {
  Terminal job(sweep("", mpirun(2, "1")));
  wait_for_lines();
  ::kill(job.process(), SIGTERM);
  EXPECT_NE(job.end(), 0) << job.shown();
  EXPECT_EQ(lines(), 2u);
  EXPECT_TRUE(results().ends_with("\"}\n"));
}

TEST_F(LostRankTest, ARankThatIsStoppedStopsThemAll) {
  Terminal job(sweep("", mpirun(2)));
  wait_for_lines();
  ::kill(wait_for_child_of(job.process(), "OMPI_COMM_WORLD_RANK=1"), SIGTERM);
  EXPECT_NE(job.end(), 0) << job.shown();
  EXPECT_NE(job.shown().find("after 2 of 3 items; the same command continues"), std::string::npos)
      << job.shown();
}

#else

TEST(HandOutTest, WithoutMpiARankIsRefused) {
  const Result result =
      shell("OMPI_COMM_WORLD_SIZE=2 '" FERRY_PROGRAM "' sweep s.toml -o r.jsonl",
            (std::filesystem::path(::testing::TempDir()) / "ferry_ranks").string());
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_NE(result.err.find("built without MPI"), std::string::npos) << result.err;
}

#endif

}  // namespace
}  // namespace ferry::cli
