// `ferry plan --stages` as its users meet it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/staged_plan.h"
#include "tests/cli/plan_folder.h"
#include "tests/sim/run/support/staged_layers.h"

namespace ferry::cli {
namespace {

class PipelinePlanTest : public PlanFolder {
 protected:
  PipelinePlanTest() {
    write("layers.jsonl", to_text(test::staged_layers({.layers = 4, .elements = 1 << 16})));
    write("six.jsonl", to_text(test::staged_layers({.layers = 6, .elements = 1 << 16})));
  }
};

constexpr const char* kLayers = " layers.jsonl --card tiny.toml --optimizer none ";

TEST_F(PipelinePlanTest, TheTable) {
  const std::string asked =
      std::string("plan --stages 2 --microbatches 4 --policy keep,per-stage") + kLayers;
  const Result result = ferry(asked);
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, R"(layers on 2 x tiny (a byte a nanosecond), budget 1.00 GiB each
Included: parameters, gradients, activations (no optimizer); the program is one micro-batch, a step has 4.

1 stage per GPU, balanced by time:
   0 on GPU 0     6.00 ms  m.0 to m.1
   1 on GPU 1     6.00 ms  m.2 to m.3
2 stages per GPU, balanced by time:
   0 on GPU 0     3.00 ms  m.0
   1 on GPU 1     3.00 ms  m.1
   2 on GPU 0     3.00 ms  m.2
   3 on GPU 1     3.00 ms  m.3

schedule     policy            step  bubble formula    reserved  fits  hazards  allocated, by GPU
gpipe        keep           30.3 ms   20.7%   20.0%    10.0 MiB   yes        0    1.38 MiB   1.25 MiB
gpipe        per-stage      30.3 ms   20.7%   20.0%    10.0 MiB   yes        0    1.38 MiB   1.25 MiB
1f1b         keep           30.5 ms   21.4%   20.0%    10.0 MiB   yes        0     899 KiB    517 KiB
1f1b         per-stage      30.5 ms   21.4%   20.0%    10.0 MiB   yes        0     899 KiB    517 KiB
interleaved  keep           27.8 ms   13.6%   11.1%    10.0 MiB   yes        0    1.25 MiB   1.00 MiB
interleaved  per-stage      27.8 ms   13.6%   11.1%    10.0 MiB   yes        0    1.25 MiB   1.00 MiB

gpipe, per-stage: keep keep
1f1b, per-stage: keep keep
interleaved, per-stage: keep keep keep keep
)");
  EXPECT_EQ(ferry(asked).out, result.out);
}

// Units are called as the program's modules are, and went to the terminal as they were.
TEST_F(PipelinePlanTest, NamesCannotWriteToTheTerminal) {
  std::string text = read("layers.jsonl");
  for (std::size_t at = text.find("\"m."); at != std::string::npos;
       at = text.find("\"m.", at + 9)) {
    text.replace(at, 3, "\"\\u001b[31mm.");
  }
  write("red.jsonl", text);
  const std::string asked = " --stages 2 --policy keep red.jsonl --card tiny.toml";
  const Result table = ferry("plan" + asked);
  EXPECT_EQ(table.code, kOk) << table.err;
  EXPECT_EQ(table.out.find('\x1b'), std::string::npos);
  EXPECT_NE(table.out.find("  \\x1b[31mm.0 to"), std::string::npos) << table.out;
  EXPECT_EQ(ferry("plan --json" + asked).out.find('\x1b'), std::string::npos);
}

TEST_F(PipelinePlanTest, JsonForMachines) {
  const Result result =
      ferry(std::string("plan --json --stages 2 --microbatches 4 --schedule 1f1b,interleaved "
                        "--policy offload,per-stage --balance memory --relay-skips "
                        "layers.jsonl --card tiny.toml"));
  EXPECT_EQ(result.code, kOk) << result.err;
  const auto json = nlohmann::ordered_json::parse(result.out);
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::vector<std::string> names;
    for (const auto& [name, value] : object.items()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys(json), (Names{"schema", "kind", "program", "hardware", "budget_bytes", "optimizer",
                               "alloc_conf", "devices", "microbatches", "balance", "relay_skips",
                               "times", "cuts", "rows", "left_out", "replicated"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["kind"], "pipeline");
  EXPECT_EQ(json["devices"], 2);
  EXPECT_EQ(json["microbatches"], 4);
  EXPECT_EQ(json["balance"], "memory");
  EXPECT_EQ(json["relay_skips"], true);
  ASSERT_EQ(json["cuts"].size(), 2u);
  EXPECT_EQ(json["cuts"][1]["stages_per_device"], 2);
  EXPECT_EQ(json["cuts"][1]["stages"].size(), 4u);
  EXPECT_EQ(json["cuts"][0]["stages"][1]["first_unit"], "m.1");
  ASSERT_EQ(json["rows"].size(), 4u);
  const auto& row = json["rows"][0];
  EXPECT_EQ(keys(row), (Names{"schedule", "policy", "cut", "step_ns", "bubble", "bubble_formula",
                              "fits", "hazards", "host_peak_bytes", "stage_policies", "devices"}));
  EXPECT_EQ(row["schedule"], "1f1b");
  EXPECT_EQ(row["policy"], "offload");
  EXPECT_EQ(row["bubble_formula"], 0.2);
  EXPECT_EQ(row["hazards"], 0);
  EXPECT_EQ(row["stage_policies"], (Names{"offload", "offload"}));
  ASSERT_EQ(row["devices"].size(), 2u);
  EXPECT_EQ(keys(row["devices"][0]),
            (Names{"peak_bytes", "reserved_bytes", "compute_ns", "bubble", "microbatches_alive",
                   "d2h_bytes", "h2d_bytes", "peer_bytes"}));
  EXPECT_EQ(row["devices"][0]["microbatches_alive"], 2);
  EXPECT_EQ(row["devices"][1]["microbatches_alive"], 1);
  EXPECT_EQ(json["rows"][3]["schedule"], "interleaved");
  EXPECT_EQ(json["rows"][3]["stage_policies"], Names(4, "keep"));
}

// Each reader says what it was given, where it is the other kind of plan.
TEST_F(PipelinePlanTest, ASimulationOfOneGpuNamesAPipelinesPlan) {
  ASSERT_EQ(ferry("plan --stages 2 --microbatches 4 -o p.json" + std::string(kLayers)).code, kOk);
  expect_refused("simulate --plan p.json" + std::string(kLayers),
                 "p.json:1: expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}; this is a "
                 "pipeline's, for `ferry train --stages`");
}

// What the table finds best is what a training is to carry out.
TEST_F(PipelinePlanTest, ThePlanOfTheFastestRowThatFitsIsWritten) {
  const std::string asked = std::string("plan --stages 2 --microbatches 4 -o p.json") + kLayers;
  const Result wide = ferry(asked);
  EXPECT_EQ(wide.code, kOk) << wide.err;
  EXPECT_NE(wide.out.find("\nwritten: p.json, the plan of interleaved, keep\n"), std::string::npos)
      << wide.out;
  const StagedPlan plan = parse_staged_plan(read("p.json"), "p.json");
  EXPECT_EQ(plan.program, "layers");
  EXPECT_EQ(plan.schedule, ScheduleKind::kInterleaved);
  EXPECT_EQ(plan.devices, 2);
  EXPECT_EQ(plan.microbatches, 4);
  ASSERT_EQ(plan.stages.size(), 4u);
  EXPECT_EQ(plan.stages[2], (PlannedStage{1, "m.2", "m.2", StagePolicy::kKeep}));
  EXPECT_GT(plan.predicted.step_ns, 0);

  const Result tight =
      ferry("plan --json --stages 2 --microbatches 4 --schedule 1f1b,gpipe -o p.json" +
            std::string(kLayers) + "--budget 1MiB");
  EXPECT_EQ(tight.code, kDoesNotFit);
  EXPECT_NE(tight.err.find("p.json: this plan does not fit"), std::string::npos) << tight.err;
  const auto json = nlohmann::json::parse(tight.out);
  const StagedPlan least = parse_staged_plan(read("p.json"), "p.json");
  EXPECT_EQ(json["written"]["policy"], least.policy);
  EXPECT_EQ(json["written"]["schedule"], std::string(name(least.schedule)));
  std::int64_t smallest = least.predicted.reserved_bytes;
  for (const auto& row : json["rows"]) {
    std::int64_t most = 0;
    for (const auto& device : row["devices"]) {
      most = std::max(most, device["reserved_bytes"].get<std::int64_t>());
    }
    smallest = std::min(smallest, most);
  }
  EXPECT_EQ(least.predicted.reserved_bytes, smallest);
  EXPECT_EQ(least.stages[0].units, 2);
  EXPECT_EQ(least.stages[0].first_unit, "m.0");
  EXPECT_EQ(least.stages[0].last_unit, "m.1");
}

TEST_F(PipelinePlanTest, WhatDoesNotFitIsPrintedAllTheSame) {
  const Result result =
      ferry(std::string("plan --stages 2 --microbatches 4 --budget 1MiB") + kLayers);
  EXPECT_EQ(result.code, kDoesNotFit) << result.err;
  EXPECT_NE(result.out.find("budget 1.00 MiB each"), std::string::npos);
  EXPECT_EQ(result.out.find("yes"), std::string::npos);
  EXPECT_EQ(result.err, "");
}

TEST_F(PipelinePlanTest, UncheckedRunsSaySo) {
  const Result result =
      ferry(std::string("plan --stages 2 --microbatches 2 --unchecked --json") + kLayers);
  EXPECT_TRUE(nlohmann::json::parse(result.out)["rows"][0]["hazards"].is_null());
}

TEST_F(PipelinePlanTest, InterleavedIsLeftOutWhereItMayNotBe) {
  const Result microbatches =
      ferry(std::string("plan --stages 2 --microbatches 3 --policy keep") + kLayers);
  EXPECT_EQ(microbatches.code, kOk) << microbatches.err;
  EXPECT_NE(
      microbatches.out.find("left out: interleaved: expected micro-batches that divide by the "
                            "devices, found 3 for 2\n"),
      std::string::npos);
  const std::string asked = "plan --stages 2 --microbatches 2 --policy keep --stages-per-device ";
  EXPECT_EQ(ferry(asked + "3 six.jsonl --card tiny.toml").out.find("left out"), std::string::npos);
  EXPECT_NE(ferry(asked + "4 six.jsonl --card tiny.toml").out.find("left out"), std::string::npos);
}

TEST_F(PipelinePlanTest, AScenarioSaysTheProgramTheCardAndTheBudget) {
  write("s.toml", R"(program = "layers.jsonl"
hardware = "tiny.toml"
budget = "3MiB"
policies = ["keep", "offload-all"]
microbatches = 2
)");
  const Result result = ferry("plan s.toml --stages 2 --microbatches 4 --json");
  EXPECT_EQ(result.code, kDoesNotFit) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["budget_bytes"], 3 << 20);
  EXPECT_EQ(json["microbatches"], 4);
  EXPECT_EQ(json["rows"].size(), 12u);
}

TEST_F(PipelinePlanTest, WrongUsageIsTwo) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--relay-skips", "--relay-skips requires --stages"},
      {"--stages 0", "--stages: "},
      {"--stages 2 --microbatches 0", "--microbatches: "},
      {"--stages 2 --stages-per-device 1", "--stages-per-device: "},
      {"--stages 2 --policy magic",
       "--policy: expected keep, checkpoint, offload or per-stage, got 'magic'"},
      {"--stages 2 --policy keep,offload-some", "--policy: expected keep, checkpoint, offload"},
      {"--policy per-stage", "--policy: expected all, keep, offload-all"},
      {"--stages 2 --schedule zigzag",
       "--schedule: expected gpipe, 1f1b or interleaved, got 'zigzag'"},
      {"--stages 2 --balance luck", "--balance: expected time or memory, got 'luck'"},
      {"--stages 2 -o p.json --relay-skips",
       "--output: expected no --relay-skips: Ferry's pipelines, which run the plan, copy skip "
       "tensors directly"},
      {"--stages 2 --schedule ffbb", "--schedule: expected gpipe, 1f1b or interleaved, got 'ffbb'"},
      {"--stages 2 --steps 3",
       "--steps: expected no --stages: a pipeline's plan has one step and no optimizer update"},
      {"--stages 2 --optimizer-implementation foreach",
       "--optimizer-implementation: expected no --stages: a pipeline's plan has one step"},
      {"--stages 2 --keep-gradients", "--keep-gradients: expected no --stages: a pipeline's plan"},
      {"--stages 2 --clip-grad-norm", "--clip-grad-norm: expected no --stages: a pipeline's plan"},
      {"--stages 2 --grad-scaler", "--grad-scaler: expected no --stages: a pipeline's plan"},
      {"--stages 2 --cublas-workspace-config :16:8",
       "--cublas-workspace-config: expected no --stages: a pipeline's plan"},
      {"--stages 2 --allocated", "--allocated: expected no --stages: a pipeline's budget is for"},
      {"--stages 2 --no-spans", "--no-spans: expected no --stages: a pipeline's stages recompute"},
      {"--stages 2 --no-modules", "--no-modules: expected no --stages: a pipeline's stages"},
      {"--stages 2 --offload-all-as trl", "--offload-all-as: expected no --stages: a pipeline's"},
      {"--stages 5 --microbatches 2",
       "layers.jsonl: gpipe: expected at least 5 units of the program for as many stages, found 4"},
      {"--stages 2 --microbatches 3 --schedule interleaved",
       "layers.jsonl: interleaved: expected micro-batches that divide by the devices"},
  };
  for (const auto& [arguments, message] : cases) {
    expect_refused("plan " + arguments + kLayers, message);
  }
  EXPECT_FALSE(exists("p.json"));
  // Of no modules.
  expect_refused("plan chain.jsonl --card tiny.toml --stages 2 --microbatches 2",
                 "chain.jsonl: cannot cut chain into stages");
}

}  // namespace
}  // namespace ferry::cli
