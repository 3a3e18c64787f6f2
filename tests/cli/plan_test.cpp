// `ferry plan` and `ferry simulate` as their users meet them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/program_file.h"
#include "scenarios/policy.h"
#include "tests/cli/plan_folder.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::cli {
namespace {

class PlanTest : public PlanFolder {};

// What `plan -o` says beside what `simulate --plan` does.
std::string of_a_run(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text);
  EXPECT_TRUE(json.contains("written"));
  EXPECT_TRUE(json.contains("answer"));
  json.erase("written");
  json.erase("answer");
  json.erase("next_steps");
  return json.dump(2) + "\n";
}

constexpr const char* kChain = " chain.jsonl --card tiny.toml --optimizer none ";

TEST_F(PlanTest, TheTable) {
  const Result result = ferry(std::string("plan") + kChain);
  EXPECT_EQ(result.code, kOk);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out,
            R"(chain on tiny (a byte a nanosecond), budget 1.00 GiB
Included: parameters, gradients, activations (no optimizer); the step is one forward and backward, the last of 3.

policy                  needs   allocated    reserved        host       step  slowdown  overlap    fits  hazards
keep                 2.00 MiB    15.0 KiB    2.00 MiB         0 B     524 ns     1.000        -     yes        0
offload-all          4.00 MiB    17.0 KiB    4.00 MiB    6.00 KiB    10.3 us    19.733    0.041 useless        0
offload              2.00 MiB    15.0 KiB    2.00 MiB    12.0 KiB    6.14 us    11.726    0.085     yes        0
best                 2.00 MiB    15.0 KiB    2.00 MiB         0 B     524 ns     1.000        -     yes        0

at its peak         parameters  gradients  optimizer activations temporaries     others
keep                  4.00 KiB        0 B        0 B    2.00 KiB    7.00 KiB   2.00 KiB
offload-all           4.00 KiB   2.00 KiB        0 B    4.00 KiB    5.00 KiB   2.00 KiB
offload               4.00 KiB        0 B        0 B    2.00 KiB    7.00 KiB   2.00 KiB
best                  4.00 KiB        0 B        0 B    2.00 KiB    7.00 KiB   2.00 KiB

offload-all: TRL's OffloadActivations, simulated: 6.00 KiB to the host, 4.00 KiB back
offload-all: the copies are late, and compute waits 9.81 us for them; still on the device: at most 6.00 KiB until its copy is done
offload: 3 storages, 6.00 KiB to the host, 0 B back (3 copies unused); window 512 MiB
offload: the copies are late, and compute waits 5.62 us for them; still on the device: at most 6.00 KiB until its copy is done, 4.00 KiB freed but not reusable until its copy is done
no bound for: offload-all (another scheduler)
keep: 1.000 of keep; no plan is below 1.000: gap 0.0 %

Use keep, the training as it is: 524 ns a step, in 2.00 MiB of 1.00 GiB.
)");
  EXPECT_EQ(ferry(std::string("plan") + kChain).out, result.out);
}

TEST_F(PlanTest, TheAllocatorHasPyTorchsOptions) {
  const std::string conf = " --alloc-conf large_segment_size_mb:40,per_process_memory_fraction:0.5";
  const Result result = ferry(std::string("plan --policy keep") + kChain + conf);
  EXPECT_EQ(result.code, kOk);
  EXPECT_TRUE(result.out.starts_with("chain on tiny (a byte a nanosecond), budget 512 MiB\n"))
      << result.out;
  EXPECT_NE(
      result.out.find("\nallocator: large_segment_size_mb:40,per_process_memory_fraction:0.5\n"),
      std::string::npos);
  const Result refused = ferry(std::string("plan") + kChain + " --alloc-conf max_split_size_mb:1");
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_EQ(
      refused.err,
      "ferry: --alloc-conf: max_split_size_mb: expected at least large_segment_size_mb, which "
      "is 20, found '1'\n");
}

std::vector<std::string> keys(const nlohmann::ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST_F(PlanTest, JsonForMachines) {
  const Result result = ferry("plan --json chain.jsonl --card tiny.toml");
  EXPECT_EQ(result.code, kOk);
  EXPECT_EQ(result.err, "");
  const auto json = nlohmann::ordered_json::parse(result.out);
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys(json),
            (Names{"schema", "program", "hardware", "budget_bytes", "optimizer", "alloc_conf",
                   "offload_all_as", "microbatches", "times", "rows", "lower_bound_ns",
                   "least_bytes", "peak_owners", "answer", "next_steps"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["program"], "chain");
  EXPECT_EQ(json["optimizer"], "adamw");
  ASSERT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(keys(json["rows"][0]), (Names{"policy",
                                          "alloc_conf",
                                          "device_peak_bytes",
                                          "device_requested_bytes",
                                          "device_reserved_bytes",
                                          "peak_bytes",
                                          "least_bytes",
                                          "host_peak_bytes",
                                          "step_ns",
                                          "slowdown",
                                          "overlap",
                                          "fits",
                                          "refusal",
                                          "useless",
                                          "errors",
                                          "hazards",
                                          "compute_ns",
                                          "optimizer_ns",
                                          "num_alloc_retries",
                                          "recomputed_segments",
                                          "recomputes",
                                          "offloaded_bytes",
                                          "reloaded_bytes",
                                          "vain_bytes",
                                          "compute_waits",
                                          "forward_stash_peak_bytes",
                                          "backward_stash_peak_bytes",
                                          "kept_peak_bytes",
                                          "waiting_peak_bytes",
                                          "deferred_peak_bytes",
                                          "idle_for_copies_ns",
                                          "idle_for_host_ns",
                                          "slowed_by_copies_ns",
                                          "d2h_ns",
                                          "h2d_ns",
                                          "lower_bound_ns",
                                          "gap"}));
  EXPECT_EQ(json["rows"][0]["policy"], "keep");
  EXPECT_EQ(json["rows"][0]["device_peak_bytes"], 15 * 1024 + 2 * 2 * 2048);
  // AdamW of two parameters, a byte a nanosecond: mul 2, lerp 3, mul 2, addcmul 3, sqrt 2, div 2,
  // add 2, addcdiv 4 accesses to each.
  EXPECT_EQ(json["rows"][0]["optimizer_ns"], 2 * 2048 * 20);
  EXPECT_EQ(json["rows"][0]["step_ns"], 524 + 2 * 2048 * 20);
  EXPECT_TRUE(json["rows"][0]["overlap"].is_null());
  EXPECT_EQ(json["rows"][2]["overlap"], 1.0);  // under the optimizer's step
  EXPECT_EQ(json["answer"],
            "Use keep, the training as it is: 82.4 us a step, in 2.00 MiB of 1.00 GiB.");
  EXPECT_FALSE(json["rows"][2]["useless"]);
  EXPECT_TRUE(json["rows"][1]["useless"]);  // 4 MiB reserved, and keep 2
  EXPECT_GT(json["rows"][1]["device_reserved_bytes"], json["rows"][0]["device_reserved_bytes"]);
  EXPECT_EQ(json["rows"][0]["hazards"], 0);
  EXPECT_EQ(json["lower_bound_ns"], json["rows"][0]["step_ns"]);
  EXPECT_EQ(json["rows"][0]["gap"], 0.0);
  EXPECT_TRUE(json["rows"][1]["gap"].is_null());  // another scheduler's
}

// The bound says what no search can.
TEST_F(PlanTest, WhereNoPlanFitsTheTableSaysWhatEachNeeds) {
  const Result result = ferry(std::string("plan --budget 4KiB") + kChain);
  EXPECT_EQ(result.code, kDoesNotFit);
  EXPECT_NE(result.out.find("no plan fits: none runs in less than 1"), std::string::npos)
      << result.out;
}

TEST_F(PlanTest, CsvHasTheRowsOfTheJson) {
  const std::string asked = std::string(" --policy keep,offload") + kChain;
  const Result csv = ferry("plan --csv" + asked);
  EXPECT_EQ(csv.code, kOk) << csv.err;
  const auto rows = nlohmann::ordered_json::parse(ferry("plan --json" + asked).out)["rows"];
  std::string keys, cells;
  const auto add = [&](const std::string& key, const nlohmann::ordered_json& value) {
    keys += (keys.empty() ? "" : ",") + key;
    if (key != "policy") cells += ",";
    if (!value.is_null()) cells += value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& row : rows) {
    keys.clear();
    for (const auto& [key, value] : row.items()) {
      if (!value.is_object()) {
        add(key, value);
        continue;
      }
      for (const auto& [inner, bytes] : value.items()) add(key + "." + inner, bytes);
    }
    cells += "\n";
  }
  EXPECT_EQ(csv.out, keys + "\n" + cells);
  expect_refused("plan --csv --json" + asked, "--json excludes --csv");
}

// One row for each budget, from the least that any plan fits to what keeping everything needs.
TEST_F(PlanTest, TheCurveOfTimeAgainstMemory) {
  const std::string asked = "plan --pareto blocks.jsonl --card tiny.toml";
  const Result result = ferry(asked + " --json");
  ASSERT_EQ(result.code, kOk) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["rows"].size(), 20u);
  EXPECT_EQ(json["rows"].front()["budget_bytes"], json["floor_bytes"]);
  EXPECT_EQ(json["rows"].back()["budget_bytes"], json["keep_bytes"]);
  EXPECT_EQ(json["rows"].back()["step_ns"], json["keep_ns"]);
  EXPECT_LT(json["floor_bytes"], json["keep_bytes"]);
  EXPECT_LE(json["least_bytes"], json["floor_bytes"]);
  for (std::size_t i = 1; i < 20; ++i) {
    EXPECT_LE(json["rows"][i]["step_ns"], json["rows"][i - 1]["step_ns"]);
  }
  const Result table = ferry(asked);
  EXPECT_NE(table.out.find("The smallest budget with a plan is "), std::string::npos);
  EXPECT_NE(table.out.find("      budget   allocated    reserved"), std::string::npos) << table.out;
  const Result csv = ferry(asked + " --csv");
  EXPECT_EQ(csv.out.rfind("budget_bytes,policy,alloc_conf,device_peak_bytes", 0), 0u) << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 21);
}

TEST_F(PlanTest, TheCurveIsOfAllBudgetsAndOfBest) {
  expect_refused(std::string("plan --pareto --budget 1GiB") + kChain, "--budget excludes --pareto");
  expect_refused(std::string("plan --pareto --policy keep") + kChain, "--policy excludes --pareto");
  expect_refused(std::string("plan --pareto -o p.json") + kChain, "--output excludes --pareto");
}

TEST_F(PlanTest, UncheckedRunsSaySo) {
  const Result table = ferry(std::string("simulate --unchecked --policy keep") + kChain);
  EXPECT_NE(table.out.find("yes        -\n"), std::string::npos);
  const Result result = ferry(std::string("simulate --unchecked --json") + kChain);
  EXPECT_TRUE(nlohmann::json::parse(result.out)["rows"][0]["hazards"].is_null());
}

TEST_F(PlanTest, WhatDoesNotFitIsPrintedAllTheSame) {
  const Result result = ferry(std::string("plan --budget 1MiB") + kChain);
  EXPECT_EQ(result.code, kDoesNotFit);
  EXPECT_NE(result.out.find("budget 1.00 MiB"), std::string::npos);
  EXPECT_NE(result.out.find("no"), std::string::npos);
  EXPECT_EQ(result.out.find("yes"), std::string::npos);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(ferry(std::string("simulate --budget 1MiB --policy keep") + kChain).code, kDoesNotFit);
}

TEST_F(PlanTest, MicrobatchesMakeALongerStep) {
  const Result result =
      ferry(std::string("simulate --json --policy keep --microbatches 3 --schedule 1f1b") + kChain);
  EXPECT_EQ(result.code, kOk);
  // Two further steps, and three sums for each weight: 3 * 2048 bytes each.
  EXPECT_EQ(nlohmann::json::parse(result.out)["rows"][0]["step_ns"], 3 * 524 + 2 * 2 * 6144);
}

TEST_F(PlanTest, PoliciesAreAListOrSaidOneByOneWhereverTheProgramStands) {
  const Result list = ferry(std::string("simulate --policy keep,offload-all") + kChain);
  EXPECT_EQ(list.code, kOk) << list.err;
  const Result each =
      ferry(std::string("simulate --policy keep") + kChain + "--policy offload-all");
  EXPECT_EQ(each.out, list.out);
}

TEST_F(PlanTest, WrongUsageIsTwo) {
  expect_refused("plan chain.jsonl", "--card: expected a card");
  expect_refused("plan chain.jsonl --card nope", "nope: expected the path of a hardware file");
  expect_refused("plan", "program is required");
  expect_refused("plan --nonsense", "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--policy magic", "--policy: expected all, " + list_of_policies() + ", got 'magic'"},
      {"--policy keep,magic", "--policy: expected all, keep"},
      {"--budget 24Gb", "--budget: expected a size such as 24GiB"},
      {"--budget 0", "--budget: expected more than 0"},
      {"--budget -5", "--budget: expected a size"},
      {"--optimizer lion", "--optimizer: expected none, sgd, momentum, adam or adamw, got 'lion'"},
      {"--schedule zigzag", "--schedule: expected fbfb, ffbb or 1f1b, got 'zigzag'"},
      {"--schedule fbfb,1f1b",
       "--schedule: expected one; only `ferry plan --stages` takes several"},
      {"--microbatches 0", "--microbatches: "},
      {"--microbatches 4097", "--microbatches: "},
  };
  for (const auto& [arguments, message] : cases) {
    const std::string chain = " chain.jsonl --card tiny.toml";
    expect_refused("plan " + arguments + chain, message);
    expect_refused("simulate " + arguments + chain, message);
  }
}

// `--budget 8GG` complained about the card that was missing as well.
TEST_F(PlanTest, AnErrorIsAboutTheOptionThatIsWrong) {
  expect_refused("plan chain.jsonl --budget 8GG", "--budget: expected a size such as 24GiB");
  expect_refused("plan none.jsonl --optimizer lion", "--optimizer: ");
  expect_refused("plan none.jsonl --schedule zigzag", "--schedule: ");
  expect_refused("plan none.jsonl --policy magic", "--policy: ");
}

TEST_F(PlanTest, NamesAreReadInAnyCaseAndTheNearestIsAskedFor) {
  const std::string typed = "simulate GPT2 --card RTX4090 --policy KEEP --optimizer AdamW";
  EXPECT_EQ(ferry(typed).out,
            ferry("simulate gpt2 --card rtx4090 --policy keep --optimizer adamw").out);
  EXPECT_EQ(ferry(typed).out,
            ferry("simulate gpt2 --card rtx4090 --policy keep --optimizer adamw").out);
  const std::vector<std::pair<std::string, std::string>> slips = {
      {"plan gpt3 --card h100", "did you mean 'gpt2'?"},
      {"plan gpt2 --card h10", "did you mean 'h100'?"},
      {"plan gpt2 --card h100 --policy prefech", "did you mean 'prefetch'?"},
      {"plan gpt2 --card h100 --optimizer adanw", "did you mean 'adamw'?"},
      {"plan gpt2 --card h100 --stages 2 --schedule gpip", "did you mean 'gpipe'?"},
      {"plan gpt2 --card h100 --bugdet 8GiB", "did you mean '--budget'? (ferry plan --help)"},
      {"plna gpt2", "there is no command 'plna': did you mean 'plan'? (ferry --help)"},
  };
  for (const auto& [arguments, question] : slips) {
    const Result result = ferry(arguments);
    EXPECT_EQ(result.code, kUsage) << arguments;
    EXPECT_TRUE(result.err.ends_with(question + "\n")) << result.err;
  }
}

TEST_F(PlanTest, ABudgetThatATablePrintedCanBeTyped) {
  const Result result = ferry(std::string("simulate --policy keep --budget 1.17GiB") + kChain);
  EXPECT_EQ(result.code, kOk) << result.err;
  EXPECT_NE(result.out.find("budget 1.17 GiB"), std::string::npos) << result.out;
}

TEST_F(PlanTest, ABadProgramIsNamedWithItsLine) {
  expect_refused("plan none.jsonl --card tiny.toml", "none.jsonl: cannot read");
  const std::string good = read("chain.jsonl");
  write("cut.jsonl", good.substr(0, good.size() / 2));
  expect_refused("plan cut.jsonl --card tiny.toml", "cut.jsonl:");
  write("empty.jsonl", "");
  expect_refused("plan empty.jsonl --card tiny.toml", "empty.jsonl");
  // Line 6 is the main code's backward.
  std::string wrong = good;
  const std::string backward = "{\"backward\":[3]}";
  ASSERT_NE(wrong.find(backward), std::string::npos);
  wrong.replace(wrong.find(backward), backward.size(), "{\"backward\":[4]}");
  write("wrong.jsonl", wrong);
  expect_refused("plan wrong.jsonl --card tiny.toml",
                 "wrong.jsonl:7: slot 4 is used before it is assigned");
}

TEST_F(PlanTest, AProgramThatHasNoMicrobatchesIsRefused) {
  Builder b;
  b.op(0, "f", {b.global(GlobalKind::kParameter, b.type({4}))}, b.type({4}));
  write("other.jsonl", to_text(b.program));
  expect_refused("plan other.jsonl --card tiny.toml --microbatches 2",
                 "other.jsonl: micro-batches need a program whose main code is one call and one "
                 "backward");
}

constexpr const char* kScenario = R"(program = "chain.jsonl"
hardware = "tiny.toml"
budget = "1MiB"
policies = ["keep", "offload-all"]
optimizer = "momentum"
microbatches = 2
)";

TEST_F(PlanTest, AScenarioSaysWhatTheCommandLineDoesNot) {
  write("s.toml", kScenario);
  const Result result = ferry("plan ./s.toml --json");
  EXPECT_EQ(result.code, kDoesNotFit) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["budget_bytes"], 1 << 20);
  EXPECT_EQ(json["optimizer"], "momentum");
  EXPECT_EQ(json["rows"].size(), 2u);
  // SGD with momentum: mul 2, add 3, add 3 accesses to two parameters.
  EXPECT_EQ(json["rows"][0]["step_ns"], 2 * 524 + 2 * 6144 + 2 * 2048 * 8);
  const auto other = nlohmann::json::parse(
      ferry("plan s.toml --json --budget 1GiB --policy keep --optimizer none --microbatches 1")
          .out);
  EXPECT_EQ(other["budget_bytes"], 1 << 30);
  EXPECT_EQ(other["rows"].size(), 1u);
  EXPECT_EQ(other["rows"][0]["step_ns"], 524);
}

TEST_F(PlanTest, ABadScenarioIsNamedWithItsLine) {
  write("s.toml", std::string(kScenario) + "colour = \"red\"\n");
  expect_refused("plan s.toml", "s.toml:7: ");
  write("s.toml", "program = \"chain.jsonl\"\nhardware = \n");
  expect_refused("plan s.toml", "s.toml:2: expected TOML");
  write("s.toml", "program = \"chain.jsonl\"\nhardware = \"tiny.toml\"\npolicies = [\"magic\"]\n");
  expect_refused("plan s.toml", "s.toml:3: expected policies: " + list_of_policies());
}

TEST_F(PlanTest, APlanThatWasWrittenRunsWithTheSameNumbers) {
  for (const std::string policy : {"keep", "offload", "prefetch", "offload-some"}) {
    const Result made = ferry("plan --json --microbatches 2 -o p.json --policy " + policy + kChain);
    ASSERT_EQ(made.code, kOk) << made.err;
    const Result run =
        ferry(std::string("simulate --json --microbatches 2 --plan p.json") + kChain);
    EXPECT_EQ(run.code, kOk) << run.err;
    EXPECT_EQ(run.out, of_a_run(made.out));
  }
}

constexpr const char* kBlocks = " blocks.jsonl --card tiny.toml ";

TEST_F(PlanTest, RowsForSegmentsAreThereWhereSegmentsAre) {
  const auto policies = [this](const std::string& program) {
    const auto json = nlohmann::json::parse(ferry("plan --json" + program).out);
    std::vector<std::string> names;
    for (const auto& row : json["rows"]) names.push_back(row["policy"]);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(policies(kBlocks), (Names{"keep", "offload-all", "offload", "checkpoint", "best"}));
  EXPECT_EQ(policies(kChain), (Names{"keep", "offload-all", "offload", "best"}));
  Names all;
  for (const PolicyEntry& each : kPolicies) {
    if (each.asked != Asked::kByName) all.emplace_back(each.name);
  }
  EXPECT_EQ(policies(std::string(" --policy all") + kBlocks), all);
  EXPECT_EQ(policies(std::string(" --policy all") + kChain),
            (Names{"keep", "offload-all", "offload", "prefetch", "offload-some", "best"}));
  expect_refused("plan --policy all,keep" + std::string(kChain),
                 "--policy: expected 'all' alone, or names");
  for (const PolicyEntry& each : kPolicies) {
    if (!each.for_segments) continue;
    const std::string_view policy = each.name;
    const std::string name(policy);
    expect_refused("plan --policy " + name + kChain,
                   "chain.jsonl: policy '" + name +
                       "' needs segments: the program has neither checkpoints nor modules that "
                       "repeat");
  }
}

// Segments are calls of code of their own; operators are those of the forward itself.
TEST_F(PlanTest, PoliciesOfOperatorsNeedSome) {
  for (const PolicyEntry& each : kPolicies) {
    if (each.asked != Asked::kByName || each.other_scheduler) continue;
    const std::string name(each.name);
    expect_refused("plan --policy " + name + kBlocks,
                   "blocks.jsonl: policy '" + name +
                       "' chooses operators: the program's forward calls other code, or has "
                       "checkpoints of its own");
  }
  const Result found = ferry("plan --json --policy keep,knapsack" + std::string(kChain));
  EXPECT_EQ(found.code, kOk) << found.err;
  EXPECT_EQ(nlohmann::json::parse(found.out)["rows"][1]["policy"], "knapsack");
}

TEST_F(PlanTest, RecomputesAreCounted) {
  const Result table = ferry(std::string("plan --policy checkpoint --microbatches 2") + kBlocks);
  EXPECT_EQ(table.code, kOk) << table.err;
  EXPECT_NE(table.out.find("\ncheckpoint: 6 of 6 segments recomputed, 6 recomputes\n"),
            std::string::npos)
      << table.out;
  const auto rows =
      nlohmann::json::parse(ferry(std::string("plan --json --policy all") + kBlocks).out)["rows"];
  for (const auto& row : rows) {
    const bool all = row["policy"] == "checkpoint" || row["policy"] == "checkpoint-offload";
    EXPECT_EQ(row["recomputed_segments"], all ? 3 : 0) << row;
    EXPECT_EQ(row["recomputes"], all ? 3 : 0) << row;
  }
}

TEST_F(PlanTest, APlanOfSegmentsRunsWithTheSameNumbers) {
  for (const PolicyEntry& each : kPolicies) {
    const std::string policy(each.name);
    if (policy == "offload-all" || each.asked == Asked::kByName)
      continue;  // TRL's: no plan of Ferry's
    for (const char* more : {" --budget 24MiB ", " --microbatches 2 --optimizer adamw "}) {
      const Result made =
          ferry("plan --json -o p.json --policy " + std::string(policy) + more + kBlocks);
      const Result run = ferry(std::string("simulate --json --plan p.json") + more + kBlocks);
      EXPECT_EQ(run.code, made.code) << made.err << run.err;
      EXPECT_EQ(run.out, of_a_run(made.out));
    }
  }
}

TEST_F(PlanTest, AMixedPlanOfAShippedProgramRunsWithTheSameNumbers) {
  const std::string gpt2 = " gpt2 --card rtx4090 --budget 7GiB --unchecked --json ";
  const Result made = ferry("plan -o p.json --policy mixed" + gpt2);
  ASSERT_EQ(made.code, kOk) << made.err;
  EXPECT_GT(nlohmann::json::parse(made.out)["rows"][0]["recomputed_segments"], 0);
  EXPECT_EQ(ferry("simulate --plan p.json" + gpt2).out, of_a_run(made.out));
}

TEST_F(PlanTest, APlanOfOtherSegmentsOrTensorsIsRefused) {
  ASSERT_EQ(ferry(std::string("plan -o p.json --policy checkpoint") + kBlocks).code, kOk);
  const auto refused = [this](const auto& change, const std::string& why) {
    auto plan = nlohmann::ordered_json::parse(read("p.json"));
    change(plan);
    write("other.json", plan.dump(2));
    expect_refused(std::string("simulate --plan other.json") + kBlocks, "other.json: " + why);
  };
  const auto plan = nlohmann::json::parse(read("p.json"));
  const std::string segments = std::to_string(plan["segments"].size());
  const std::string tensors = std::to_string(plan["entries"].size());
  refused([](auto& other) { other["segments"].push_back(other["segments"].back()); },
          "the plan has " + std::to_string(plan["segments"].size() + 1) +
              " segments, the program " + segments);
  refused([](auto& other) { other["entries"].erase(other["entries"].size() - 1); },
          "the plan has " + std::to_string(plan["entries"].size() - 1) +
              " saved tensors, the program " + tensors);
  refused(
      [](auto& other) { other["entries"][0]["op"] = "Other"; },
      "entry 0 of the plan is saved tensor 0 of Other, in the program it is saved tensor 0 of ");
}

// The last row's was: of a ResNet that fits as it is, a plan that moved 490 MiB for nothing.
TEST_F(PlanTest, TheBestRowThatFitsIsWrittenAndNamed) {
  const std::string blocks = std::string(" --microbatches 2") + kBlocks;
  const Result all = ferry("plan -o p.json" + blocks);
  ASSERT_EQ(all.code, kOk) << all.err;
  EXPECT_TRUE(all.out.ends_with("\nwritten: p.json, the plan of keep\n")) << all.out;
  EXPECT_NE(read("p.json").find("\"policy\": \"keep\""), std::string::npos);
  const Result json = ferry("plan -o p.json --json" + blocks);
  EXPECT_EQ(nlohmann::json::parse(json.out)["written"],
            nlohmann::json({{"file", "p.json"}, {"policy", "keep"}}));
  const Result one = ferry("plan -o p.json --policy offload" + blocks);
  EXPECT_TRUE(one.out.ends_with("\nwritten: p.json, the plan of offload\n")) << one.out;
  expect_refused("plan -o p.json --policy offload-all" + blocks,
                 "--output: offload-all is another library's scheduler");
  expect_refused("plan -o p.json --policy checkpoint-offload-all" + blocks,
                 "--output: checkpoint-offload-all is another library's scheduler");
}

// A segment that raises when it runs again ends the backward: what that costs says nothing.
TEST_F(PlanTest, AnErrorIsInItsRowWhichIsNoAnswer) {
  Program program = test::segmented({{}, {}, {}}, {.inner_elements = 1 << 22});
  for (Code& code : program.codes) {
    if (code.name != "part.1") continue;
    code.statements.insert(code.statements.begin(), {{When{true, 1}, 0}, {Raise{"boom"}, 0}});
  }
  write("raises.jsonl", to_text(program));
  const std::string raises = " raises.jsonl --card tiny.toml ";
  const Result table = ferry("plan -o p.json" + raises);
  EXPECT_EQ(table.code, kViolated);
  EXPECT_NE(table.err.find(": boom\n"), std::string::npos) << table.err;
  EXPECT_TRUE(table.out.ends_with("written: p.json, the plan of keep\n")) << table.out;
  // It has no figures, for they would be of a part of the training.
  const std::size_t at = table.out.find("\ncheckpoint  ");
  ASSERT_NE(at, std::string::npos) << table.out;
  const std::string line = table.out.substr(at + 1, table.out.find('\n', at + 1) - at - 1);
  EXPECT_NE(line.find(" failed "), std::string::npos) << line;
  EXPECT_EQ(line.find("iB"), std::string::npos) << line;
  EXPECT_EQ(table.out.find("\ncheckpoint  ", at + 1), std::string::npos) << table.out;
  const auto rows = nlohmann::json::parse(ferry("plan --json" + raises).out)["rows"];
  for (const auto& row : rows) {
    const bool all = row["policy"] == "checkpoint" || row["policy"] == "checkpoint-offload";
    EXPECT_EQ(row["errors"].size(), all ? 1 : 0) << row;
    EXPECT_EQ(row["slowdown"].is_null(), all) << row;
    if (all) {
      EXPECT_EQ(row["errors"][0]["message"], "boom") << row;
    }
  }
}

TEST_F(PlanTest, APlanThatIsNotThisProgramsOrBrokenIsRefused) {
  ASSERT_EQ(ferry(std::string("plan -o p.json --policy offload") + kChain).code, kOk);
  write("longer.jsonl", to_text(test::chain({.layers = 3})));
  expect_refused("simulate longer.jsonl --card tiny.toml --plan p.json",
                 "p.json: this plan is for program chain with digest ");
  expect_refused(std::string("simulate --microbatches 2 --plan p.json") + kChain,
                 "p.json: this plan is for program chain with digest ");
  const std::string plan = read("p.json");
  write("cut.json", plan.substr(0, plan.size() / 2));
  expect_refused(std::string("simulate --plan cut.json") + kChain, "cut.json:");
  expect_refused(std::string("simulate --plan none.json") + kChain, "none.json: cannot read");
  std::string odd = plan;
  odd.replace(odd.find("window_packs"), 12, "window_bytez");
  write("odd.json", odd);
  expect_refused(std::string("simulate --plan odd.json") + kChain,
                 "odd.json: no option of the offloader is called 'window_bytez'");
}

TEST_F(PlanTest, WhereNothingCanBeWrittenNothingIs) {
  const Result result = ferry(std::string("plan -o nowhere/p.json --policy keep") + kChain);
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("nowhere/p.json"), std::string::npos);
  EXPECT_FALSE(exists("nowhere"));
  EXPECT_EQ(files(), 3);  // the programs and the card
  expect_refused(std::string("plan -o p.json --budget 24Gb") + kChain, "--budget");
  EXPECT_FALSE(exists("p.json"));
}

TEST_F(PlanTest, AViolatedRunIsOne) {
  Builder b;
  b.program.name = "fails";
  const CodeId segment = b.code(CodeKind::kSegment, "forward");
  const Slot w = b.global(GlobalKind::kParameter, b.type({4}));
  b.add(segment, Raise{"boom"});
  b.result(segment, b.op(segment, "f", {w}, b.type({4})));
  b.add(0, Call{segment, {}, {b.slot(0)}});
  write("fails.jsonl", to_text(b.program));
  const Result result = ferry("simulate fails.jsonl --card tiny.toml --policy keep");
  EXPECT_EQ(result.code, kViolated);
  EXPECT_NE(result.out.find("keep"), std::string::npos);
  EXPECT_EQ(result.err, "ferry: keep: fails:4: boom\n");
}

}  // namespace
}  // namespace ferry::cli
