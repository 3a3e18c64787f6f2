// Lists the choices in a program: the tensors that its first forward saves, and its segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

struct PackedTensor {
  std::string node;
  Layout layout;
  std::uint64_t group = 0;         // the storage, numbered in order of first packs
  std::uint64_t storage = 0;       // the same, as the machine numbers it in any run of the program
  std::int64_t storage_bytes = 0;  // bytes of the whole storage
  bool global = false;             // true for parameters, buffers and inputs
  bool exempt = false;             // true for parameters and buffers: the offloader leaves them
  std::uint32_t kernels = 0;       // of the step, before it
};

// A call that may be a checkpoint. Calls inside it are no segments of their own.
struct SurveyedSegment {
  std::vector<PackedTensor> inputs;  // saved by a checkpoint, seen by the hooks
  bool whole = false;                // reentrant: it recomputes all that it saves, or nothing
  std::size_t first = 0;             // its first pack, in the survey
  std::size_t end = 0;
  std::uint32_t kernels = 0;  // of the step, before it
};

struct Survey {
  // The tensors that hooks see when every segment runs without a checkpoint, in order.
  std::vector<PackedTensor> packs;
  std::vector<SurveyedSegment> segments;
};

Survey survey(const Program& program, const Hardware& hardware);
// Of a program without segments, with spans of operators: what its spans do not make again, and
// what their replays begin from, as hooks around the spans see it. `prepared`: of the program on
// this hardware, without kernels' memory, for several surveys; null: it is made.
Survey survey(const Program& program, const Hardware& hardware, const std::vector<PlanSpan>& spans,
              std::shared_ptr<const sim::Prepared> prepared = nullptr);

}  // namespace ferry::plan
