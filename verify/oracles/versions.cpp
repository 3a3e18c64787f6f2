#include "verify/oracles/versions.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "verify/oracles/model_run.h"

namespace ferry::verify {
namespace {

std::string text_of(const sim::ProgramError& error) {
  return "after " + std::to_string(error.unpacked) + " other saved tensors: " + error.message;
}

}  // namespace

std::vector<sim::ProgramError> expected_errors(const Program& program,
                                               const std::vector<PlanSpan>& spans,
                                               const SegmentPlan* plan,
                                               std::shared_ptr<const sim::Prepared> prepared) {
  return ModelRun(program, spans, plan, std::move(prepared)).errors();
}

std::string misrefused(const std::vector<sim::ProgramError>& expected,
                       const std::vector<sim::ProgramError>& found) {
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    if (i >= found.size()) return "expected an error " + text_of(expected[i]);
    if (i >= expected.size()) return "unexpected error " + text_of(found[i]);
    if (expected[i].message != found[i].message || expected[i].unpacked != found[i].unpacked) {
      return "error " + text_of(found[i]) + ", expected " + text_of(expected[i]);
    }
  }
  return "";
}

}  // namespace ferry::verify
