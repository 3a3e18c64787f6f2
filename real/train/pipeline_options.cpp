#include "real/train/pipeline_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "real/train/needs.h"

namespace ferry::real::train {

namespace {

template <class Kind, std::size_t N>
Kind named(const std::string_view (&names)[N], const std::string& text) {
  return static_cast<Kind>(std::find(names, names + N, text) - names);
}

[[noreturn]] void refuse(const char* option, const std::string& text) {
  throw InputError(option, 0, text);
}

// Checks the schedule of the options; a plan has its own.
void check_schedule(const Options& options) {
  const std::int64_t each = options.stages_per_device;
  if (options.stages % each != 0) {
    refuse("--stages", fmt::format("expected a multiple of --stages-per-device {}", each));
  }
  const std::int64_t devices = options.stages / each;
  if (options.schedule == ScheduleKind::kInterleaved && options.microbatches % devices != 0) {
    refuse("--microbatches",
           fmt::format("expected a multiple of {} with --schedule interleaved, which "
                       "puts {} stages on {} devices",
                       devices, options.stages, devices));
  }
  if (options.cuda && devices > 1) {
    refuse("--stages", "expected as many as --stages-per-device on one GPU");
  }
}

void check(const Options& options) {
  if (options.batch % options.microbatches != 0) {
    refuse("--microbatches", fmt::format("expected a divisor of --batch {}, found {}",
                                         options.batch, options.microbatches));
  }
  needs("--capture", !options.capture.empty(), options.microbatches == 1,
        "--microbatches 1: a program has one micro-batch (make --batch smaller)");
  if (options.stages == 0) return;
  const std::int64_t layers = options.gpt.layers + 2;
  if (options.stages > layers) {
    refuse("--stages", fmt::format("expected no more than {}: the embedding, {} blocks, the head",
                                   layers, options.gpt.layers));
  }
  if (options.gpt.dropout > 0) {
    refuse("--dropout",
           "expected none with --stages: the threads of the stages would use one "
           "random generator in no order");
  }
  const char* single = "no --stages: it supports one thread only";
  needs("--capture", !options.capture.empty(), false, single);
  needs("--trace", !options.trace.empty(), false, single);
  if (options.plan.empty()) check_schedule(options);
}

}  // namespace

void add_pipeline_options(CLI::App& command, Options& options, TypedPipeline& typed) {
  command
      .add_option("--stages", options.stages,
                  "Number of pipeline stages, with a thread for each device; 0: no pipeline")
      ->type_name("N")
      ->check(CLI::Range(0, 1026))
      ->capture_default_str();
  command.add_option("--schedule", typed.schedule, "gpipe, 1f1b (the default) or interleaved")
      ->type_name("NAME")
      ->check(CLI::IsMember({"gpipe", "1f1b", "interleaved"}).description(""));
  command
      .add_option("--pipe-checkpoint", typed.checkpoint,
                  "Micro-batches to recompute: always, except_last or never (the default)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"always", "except_last", "never"}).description(""));
  command
      .add_option("--stages-per-device", typed.stages_per_device,
                  "Stages on each device, with --schedule interleaved (default: 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 1026));
}

void understand_pipeline(Options& options, const TypedPipeline& typed) {
  const char* with = "--stages N";
  const bool stages = options.stages > 0;
  needs("--schedule", !typed.schedule.empty(), stages, with);
  needs("--pipe-checkpoint", !typed.checkpoint.empty(), stages, with);
  const bool planned = stages && !options.plan.empty();
  const char* without = "no --plan, which has its own";
  needs("--schedule", !typed.schedule.empty(), !planned, without);
  needs("--pipe-checkpoint", !typed.checkpoint.empty(), !planned, without);
  needs("--stages-per-device", typed.stages_per_device > 0, typed.schedule == "interleaved",
        "--schedule interleaved");
  if (!typed.schedule.empty()) {
    options.schedule = named<ScheduleKind>(kScheduleNames, typed.schedule);
  }
  if (!typed.checkpoint.empty()) {
    options.pipe_checkpoint = named<CheckpointMode>(kCheckpointModeNames, typed.checkpoint);
  }
  options.stages_per_device = typed.stages_per_device;
  if (typed.stages_per_device == 0) {
    options.stages_per_device = options.schedule == ScheduleKind::kInterleaved ? 2 : 1;
  }
  check(options);
}

}  // namespace ferry::real::train
