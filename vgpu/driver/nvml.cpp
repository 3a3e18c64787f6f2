// The little of NVML that LibTorch asks. Before it maps expandable segments: whether devices are
// joined by a fabric, or by links. They are not. (2.15 asks without looking whether NVML is there.)
// Where memory is out: which other processes have some. None has.
//
// Loaded under NVML's own name, libnvidia-ml.so.1, so that LibTorch's dlopen finds it.
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
