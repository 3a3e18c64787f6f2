// The little of the CUDA driver that LibTorch calls past the runtime: whether a device's context
// exists, of which autograd asks at each backward. It does.
//
// Loaded under the driver's own name, libcuda.so.1, so that LibTorch's dlopen finds it. What else
// of the driver LibTorch looks up fails by name.
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
