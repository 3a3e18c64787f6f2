// A tool in this program that listens to NVTX, as a profiler does: NVTX calls the function that
// InitializeInjectionNvtx2_fnptr points to before its first event.
#include "real/cuda/step_range.h"

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <string>
#include <vector>

#include "real/cuda/cuda_device.h"

namespace {

std::map<const void*, std::string>& registered() {
  static std::map<const void*, std::string> names;
  return names;
}
std::vector<std::string>& seen() {
  static thread_local std::vector<std::string> names;
  return names;
}
int domain = 0;  // its address is the handle

nvtxDomainHandle_t create(const char* name) {
  registered()[&domain] = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  auto* const handle = new char;  // of a domain that lives as long as the program
  registered()[handle] = text;
  return reinterpret_cast<nvtxStringHandle_t>(handle);
}
int push(nvtxDomainHandle_t on, const nvtxEventAttributes_t* range) {
  seen().push_back(registered()[on] + ": " + registered()[range->message.registered]);
  return 0;
}
int pop(nvtxDomainHandle_t) {
  seen().push_back("end");
  return 0;
}

template <class Function>
void install(NvtxFunctionTable table, std::size_t callback, Function* function) {
  *table[callback] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int listen(NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  install(table, NVTX_CBID_CORE2_DomainCreateA, &create);
  install(table, NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
  install(table, NVTX_CBID_CORE2_DomainRangePushEx, &push);
  install(table, NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}

// The header defines the pointer, weakly, in each file that includes it.
[[maybe_unused]] const bool at_load = [] {
  InitializeInjectionNvtx2_fnptr = &listen;
  return true;
}();

}  // namespace

namespace ferry::real {
namespace {

using Names = std::vector<std::string>;

TEST(StepRange, IsNamedForTheStepAndNests) {
  seen().clear();
  {
    const StepRange outer(Step::kOffload);
    const StepRange inner(Step::kReleaseAfterNode);
  }
  EXPECT_EQ(seen(), (Names{"ferry: offload", "ferry: release after node", "end", "end"}));
}

TEST(StepRange, IsMadeByEachCallOfTheDevice) {
  CudaDevice device({.index = 0});
  const c10::Stream lane = device.lane(Lane::kDeviceToHost);
  seen().clear();
  const CudaDevice::Event event = device.record(Step::kProduced, device.current_stream());
  device.wait(Step::kOffloadAfterProducer, lane, event);
  const c10::Storage storage = device.allocate(Step::kReloadAllocate, 4096, lane);
  auto host = device.allocate_host(Step::kHostAllocate, 4096, HostMemory::kPinned);
  device.offload(Step::kOffload, storage, 0, host, lane);
  device.reload(Step::kReload, host, storage, lane);
  device.record_use(Step::kEscaped, storage, device.current_stream());
  const CudaDevice::Event done = device.record(Step::kReloaded, lane);
  device.release_host(Step::kHostReturn, std::move(host), {&done, 1});
  EXPECT_EQ(seen(), (Names{"ferry: produced", "end", "ferry: offload after producer", "end",
                           "ferry: reload allocate", "end", "ferry: host allocate", "end",
                           "ferry: offload", "end", "ferry: reload", "end", "ferry: escaped", "end",
                           "ferry: reloaded", "end", "ferry: host return", "end"}));
}

}  // namespace
}  // namespace ferry::real
