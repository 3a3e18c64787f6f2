#include "real/calibrate/kernels.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/cuda.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "real/train/guarded.h"
#include "real/train/workload.h"

namespace ferry::real::calibrate {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

void step(train::Workload& workload, std::int64_t number) {
  workload.loss(workload.batch(number)).backward();
  workload.module().zero_grad();
  torch::cuda::synchronize();  // kernels that end after the profiling are not recorded
}

// Ends the profiling, even if the step throws.
class Profiling {
 public:
  Profiling() {
    const ProfilerConfig config(ProfilerState::KINETO);
    const std::set<ActivityType> activities = {ActivityType::CUDA};
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(config, activities);
  }
  Profiling(const Profiling&) = delete;
  Profiling& operator=(const Profiling&) = delete;
  ~Profiling() {
    if (open_) profiler::disableProfiler();
  }
  std::unique_ptr<profiler::ProfilerResult> end() {
    open_ = false;
    return profiler::disableProfiler();
  }

 private:
  bool open_ = true;
};

}  // namespace

std::vector<KernelUse> measure_kernels(const train::Options& model) {
  const auto workload = train::make_workload(model);
  workload->module().train();
  step(*workload, 0);
  std::map<std::string, KernelUse> by_name;
  Profiling profiling;
  step(*workload, 1);
  const auto result = profiling.end();
  for (const profiler::KinetoEvent& event : result->events()) {
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    KernelUse& use = by_name[event.name()];
    use.name = event.name();
    ++use.count;
    use.total_ns += static_cast<std::int64_t>(event.durationNs());
  }
  if (by_name.empty()) {
    throw train::ResourceMissing(
        "--kernels: CUPTI saw no kernel of this step (no GPU that it knows, or its "
        "use is restricted to administrators)");
  }
  std::vector<KernelUse> kernels;
  for (auto& [name, use] : by_name) kernels.push_back(std::move(use));
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelUse& a, const KernelUse& b) { return a.total_ns > b.total_ns; });
  return kernels;
}

std::string kernels_json(const std::vector<KernelUse>& kernels, const std::string& device,
                         const std::string& date) {
  nlohmann::ordered_json json = {{"ferry", "kernels"}, {"schema", 1},   {"device", device},
                                 {"date", date},       {"total_ns", 0}, {"kernels", {}}};
  std::int64_t total = 0;
  for (const KernelUse& each : kernels) {
    total += each.total_ns;
    json["kernels"].push_back(
        {{"name", each.name}, {"count", each.count}, {"total_ns", each.total_ns}});
  }
  json["total_ns"] = total;
  return json.dump(1) + "\n";
}

}  // namespace ferry::real::calibrate
