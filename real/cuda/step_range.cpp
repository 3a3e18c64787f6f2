#include "real/cuda/step_range.h"

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstddef>

namespace ferry::real {
namespace {

// Registers the names with the tool once, so that a range carries a handle and no text.
class Names {
 public:
  Names() : domain_(nvtxDomainCreateA("ferry")) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      handles_[step] = nvtxDomainRegisterStringA(domain_, kStepInfo[step].name.data());
    }
  }
  static const Names& instance() {
    static const auto* const names = new Names;  // ranges may end after main
    return *names;
  }

  void push(Step step) const {
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    range.message.registered = handles_[static_cast<std::size_t>(step)];
    nvtxDomainRangePushEx(domain_, &range);
  }
  void pop() const { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;  // null if no tool is attached
  std::array<nvtxStringHandle_t, kSteps> handles_{};
};

}  // namespace

StepRange::StepRange(Step step) { Names::instance().push(step); }
StepRange::~StepRange() { Names::instance().pop(); }

}  // namespace ferry::real
