// The command line, parsed and checked.
//
// `ferry train gpt`, `llama` and `resnet` have the same options but for the model's own.
// Contradictions are refused here, before anything is made, or read but the plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "formats/plan.h"
#include "real/train/gpt.h"
#include "real/train/llama.h"
#include "real/train/resnet.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/stage.h"

namespace ferry::real::train {

enum class Model : std::uint8_t { kGpt, kLlama, kResnet };

// Keep: plain LibTorch. Offload: every large enough tensor moves. Checkpoint: every block is
// recomputed. Budget and mixed: a plan of `ferry plan` decides what moves and what is recomputed;
// mixed without a plan recomputes every second block, and moves the rest.
enum class PolicyKind : std::uint8_t { kKeep, kOffload, kCheckpoint, kBudget, kMixed };

struct Options {
  Model model = Model::kGpt;
  GptOptions gpt;
  LlamaOptions llama;
  ResnetOptions resnet;
  std::int64_t batch = 8;
  std::int64_t images = 2000;
  std::filesystem::path data;               // empty: the default text
  torch::ScalarType dtype = torch::kFloat;  // dtype of weights, moments and activations

  std::int64_t steps = 50;  // the last step's number: a resumed training counts on
  std::int64_t seed = 1;
  double learning_rate = 1e-3;
  std::int64_t threads = 0;       // 0: LibTorch's choice
  std::int64_t microbatches = 1;  // number of micro-batches
  std::int64_t stages = 0;        // number of pipeline stages; 0: no pipeline
  std::int64_t stages_per_device = 1;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  CheckpointMode pipe_checkpoint = CheckpointMode::kNever;
  bool cuda = false;

  PolicyKind policy = PolicyKind::kKeep;
  std::filesystem::path plan;
  std::shared_ptr<const Plan> planned;  // what it says; null: none, or one for stages
  std::filesystem::path disk;
  std::optional<std::int64_t> disk_bytes_max;
  bool keep_when_full = false;  // what the host side has no room for
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> prefetch;
  std::optional<std::int64_t> min_bytes;

  std::filesystem::path save;
  std::filesystem::path resume;
  std::int64_t save_every = 0;  // in steps; 0: at the end only

  bool json = false;
  std::filesystem::path log;        // the stream log
  std::filesystem::path decisions;  // the decision log
  std::filesystem::path trace;
  std::filesystem::path capture;  // record the first step as a program, then stop
  bool plain = false;             // and no block of it as a checkpoint
};

// None: help or the version was asked for, and printed. Throws CLI::ParseError for unknown
// arguments and InputError for senseless ones, and for a plan that cannot be read.
std::optional<Options> parse_options(int argc, const char* const* argv);

const char* name(Model model);
const char* name(PolicyKind policy);

}  // namespace ferry::real::train
