// A survey lists the choices that a plan can make in a program: the tensors that its first forward
// saves, and its segments. It simulates the program as far as needed. A mix (mix.h) and the entries
// of a plan file refer to saved tensors and segments by their numbers in a survey.
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

// A saved tensor.
struct PackedTensor {
  std::string node;
  Layout layout;
  std::uint64_t group = 0;         // number of its storage, in order of first saves
  std::uint64_t storage = 0;       // the storage's number in the machine: equal in all runs
  std::int64_t storage_bytes = 0;  // bytes of the whole storage
  bool global = false;             // true for parameters, buffers and inputs
  bool exempt = false;             // true for parameters and buffers: the offloader leaves them
  std::uint32_t kernels = 0;       // number of kernels of the step before this save
};

// A call that may be a checkpoint. Calls inside it are not segments.
struct SurveyedSegment {
  std::vector<PackedTensor> inputs;  // the inputs that a checkpoint saves and hooks see
  bool whole = false;                // reentrant: it recomputes all of its saves, or none
  std::size_t first = 0;             // its saves are Survey::packs [first, end)
  std::size_t end = 0;
  std::uint32_t kernels = 0;  // number of kernels of the step before it
};

struct Survey {
  // The tensors that hooks see when every segment runs without a checkpoint, in order.
  std::vector<PackedTensor> packs;
  std::vector<SurveyedSegment> segments;
};

Survey survey(const Program& program, const Hardware& hardware);
// Surveys a program with spans of operators. It has no segments; the saved tensors are those that
// hooks around the spans see: what the spans do not recompute, and the inputs of their replays.
// `prepared` is the prepared program on this hardware, without kernels' memory, which several
// surveys can share; null: it is made.
Survey survey(const Program& program, const Hardware& hardware, const std::vector<PlanSpan>& spans,
              std::shared_ptr<const sim::Prepared> prepared = nullptr);

}  // namespace ferry::plan
