// The command line of `ferry train`, parsed and checked.
//
// `ferry train gpt`, `llama` and `resnet` have the same options, except for those of the model.
// Contradictions are errors here, before anything is made or read (except the plan).
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

// kKeep is plain LibTorch. kOffload offloads every tensor that is large enough. kCheckpoint
// recomputes every block. With kOffloadSome and kMixed a plan of `ferry plan` decides what is
// offloaded and what is recomputed. kMixed without a plan recomputes every second block and
// offloads the rest.
enum class PolicyKind : std::uint8_t { kKeep, kOffload, kCheckpoint, kOffloadSome, kMixed };

struct Options {
  Model model = Model::kGpt;
  GptOptions gpt;
  LlamaOptions llama;
  ResnetOptions resnet;
  std::int64_t batch = 8;
  std::int64_t images = 2000;
  std::filesystem::path data;               // empty: the default text
  torch::ScalarType dtype = torch::kFloat;  // dtype of weights, moments and activations

  std::int64_t steps = 50;  // number of the last step; a resumed training counts on
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
  std::shared_ptr<const Plan> planned;  // the plan; null: none, or one for stages
  std::filesystem::path disk;
  std::optional<std::int64_t> disk_bytes_max;
  bool keep_when_full = false;  // tensors for which the host has no room
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> prefetch;
  std::optional<std::int64_t> min_bytes;

  std::filesystem::path save;
  std::filesystem::path resume;
  std::int64_t save_every = 0;  // in steps; 0: only at the end

  bool json = false;
  std::filesystem::path log;        // the stream log
  std::filesystem::path decisions;  // the decision log
  std::filesystem::path trace;
  std::filesystem::path capture;  // record the first step as a program, then stop
  bool plain = false;             // without checkpoints for its blocks
};

// Returns none if --help or --version was given, and printed. Throws CLI::ParseError for unknown
// arguments, InputError for invalid ones and for a plan that cannot be read.
std::optional<Options> parse_options(int argc, const char* const* argv);

const char* name(Model model);
const char* name(PolicyKind policy);

}  // namespace ferry::real::train
