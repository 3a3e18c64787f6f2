// The functions of NVML that LibTorch calls.
//
// Before it maps expandable segments, LibTorch asks whether a fabric or links connect the devices.
// The answer is no. (PyTorch 2.15 asks without checking that NVML is there.) When memory is out, it
// asks which other processes use the device. There are none.
//
// The library is loaded under NVML's own name, libnvidia-ml.so.1, so that LibTorch's dlopen finds
// it.
namespace ferry::vgpu {

namespace {
constexpr int kSuccess = 0;       // NVML_SUCCESS
constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED
}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }

int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static char any = 0;
  *device = &any;
  return kSuccess;
}

// The caller's structure is all zeros: NVML_GPU_FABRIC_STATE_NOT_SUPPORTED.
int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kSuccess; }

int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kNotSupported; }

int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}

int nvmlSystemGetCudaDriverVersion_v2(int*) { return kNotSupported; }

}  // extern "C"

}  // namespace ferry::vgpu
