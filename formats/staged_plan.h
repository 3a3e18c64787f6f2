// The plan of a pipeline: the units of each stage, what each stage keeps for backward, and the
// schedule. `ferry plan --stages` writes it, and `ferry train --stages` runs it. The file is a JSON
// object, schema 1, with one stage on each line:
//
//   {
//     "ferry": "pipeline plan",
//     "schema": 1,
//     "program": {"name":"gpt","digest":"0123456789abcdef"},
//     "hardware": "h100",
//     "policy": "per-stage",
//     "schedule": "1f1b",
//     "devices": 2,
//     "chunks": 4,
//     "options": {"bytes_min":1048576},
//     "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
//     "stages": [
//       {"units":2,"first_unit":"begin","last_unit":"h.0","policy":"checkpoint"},
//       {"units":1,"first_unit":"h.1","last_unit":"h.1","policy":"keep"}
//     ]
//   }
//
// Stage s is on device s % devices. "chunks" is the number of micro-batches. `options` are those of
// the offloader, on each device that has a stage that offloads. `predicted` is for the whole step;
// its bytes are those of the device that needs the most. The reader reports the same errors as
// plan_file.h, and a schedule that does not fit the number of stages, devices and micro-batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/plan.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/stage_policy.h"

namespace ferry {

struct PlannedStage {
  std::int64_t units = 1;
  std::string first_unit;  // names of units; equal if there is only one
  std::string last_unit;
  StagePolicy policy = StagePolicy::kKeep;
  bool operator==(const PlannedStage&) const = default;
};

struct StagedPlan {
  std::string program;
  std::string program_digest;
  std::string hardware;
  std::string policy;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  std::int64_t devices = 1;
  std::int64_t microbatches = 1;
  std::vector<std::pair<std::string, std::int64_t>> options;  // the offloader's options, in order
  Prediction predicted;
  std::vector<PlannedStage> stages;
  bool operator==(const StagedPlan&) const = default;
};

std::string to_text(const StagedPlan& plan);
// Writes the file completely or not at all.
void write_plan(const std::filesystem::path& path, const StagedPlan& plan);

StagedPlan parse_staged_plan(std::string_view text, const std::string& file);
StagedPlan read_staged_plan(const std::filesystem::path& path);

}  // namespace ferry
