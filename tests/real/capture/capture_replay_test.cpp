// A real run's two files, its program and its decision log, are all that `ferry replay` needs.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/decision_log.h"
#include "formats/program_file.h"
#include "formats/text_file.h"
#include "tests/real/capture/models.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

TEST(RealReplayTest, ARunOfThreeStepsIsReplayedFromItsFiles) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                       ("ferry_real_replay_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  torch::manual_seed(1);
  const Step step = all_steps()[1].make();
  write_program(folder / "step.jsonl", capture_of(step, /*times=*/true));

  DecisionLog log;
  log.options.window_tensors = 3;
  log.options.prefetch_bytes = 16384;
  Offload offload(real_options(log.options));
  offload.exempt(*step.module);
  for (int i = 0; i < 3; ++i) {
    const OffloadGuard guard(offload);
    step.run();
  }
  log.decisions = offload.take_decisions();

  const auto replay = [&] {
    write_decision_log(folder / "run.jsonl", log);
    const std::string command = std::string(FERRY_PROGRAM) + " replay " +
                                (folder / "step.jsonl").string() + " --decisions " +
                                (folder / "run.jsonl").string() + " >" + (folder / "out").string() +
                                " 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  EXPECT_EQ(replay(), 0) << read_file(folder / "out");
  EXPECT_EQ(read_file(folder / "out").rfind("the same: 3 runs of ", 0), 0u);

  const std::size_t changed = log.decisions.size() / 3 + 7;  // in the second run
  log.decisions[changed].bytes += 512;
  EXPECT_EQ(replay(), 6);
  EXPECT_EQ(read_file(folder / "out").rfind("different: run 2, decision 7 (", 0), 0u)
      << read_file(folder / "out");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ferry::real::capture
