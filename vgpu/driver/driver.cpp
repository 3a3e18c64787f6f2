// The one function of the CUDA driver that LibTorch calls directly, not through the runtime.
// Autograd asks it at each backward whether a device's context exists. It always says yes.
//
// The library is loaded under the driver's own name, libcuda.so.1, so that LibTorch's dlopen finds
// it. Any other driver function that LibTorch looks up here is missing, and the error has its name.
#include <cuda.h>

namespace ferry::vgpu {

extern "C" {

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

}  // extern "C"

}  // namespace ferry::vgpu
