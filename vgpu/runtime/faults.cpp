#include "vgpu/runtime/faults.h"

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {

std::int64_t Faults::calls(const std::string& name) const {
  const auto found = calls_.find(name);
  return found != calls_.end() ? found->second : 0;
}

cudaError_t Faults::take_error(const char* name) {
  if (broken_ != cudaSuccess) return broken_;
  const auto found = planned_.find(name);
  if (found == planned_.end()) return cudaSuccess;
  Planned& planned = found->second;
  if (planned.where == Where::kInAStep && thread().step == Step::kUser) return cudaSuccess;
  if (planned.left-- != 0) return cudaSuccess;
  const cudaError_t error = planned.error;
  planned_.erase(found);
  return error;
}

void Faults::plan(const std::string& name, std::int64_t nth, cudaError_t error, Where where) {
  planned_[name] = {nth, error, where};
}

}  // namespace ferry::vgpu
