// Entry points that LibTorch's CUDA code may call and that this runtime does not support. Each
// fails with cudaErrorNotSupported, and the error text has its name. Without these definitions the
// real libcudart would answer, and blame a driver that is too old.
//
// This file cannot include CUDA's header, which declares these functions with their arguments.
namespace ferry::vgpu {

int refuse(const char* name);  // defined in device_entries.cpp

}  // namespace ferry::vgpu

#define REFUSED(name) \
  int name() { return ::ferry::vgpu::refuse(#name); }

extern "C" {

REFUSED(cudaDeviceGetGraphMemAttribute)
REFUSED(cudaDeviceSetGraphMemAttribute)
REFUSED(cudaFuncGetAttributes)
REFUSED(cudaFuncSetAttribute)
REFUSED(cudaGetSymbolAddress)
REFUSED(cudaGraphAddNode)
REFUSED(cudaGraphConditionalHandleCreate)
REFUSED(cudaGraphDebugDotPrint)
REFUSED(cudaGraphNodeGetDependencies)
REFUSED(cudaGraphRetainUserObject)
REFUSED(cudaHostRegister)
REFUSED(cudaHostUnregister)
REFUSED(cudaIpcCloseMemHandle)
REFUSED(cudaIpcGetEventHandle)
REFUSED(cudaIpcGetMemHandle)
REFUSED(cudaIpcOpenEventHandle)
REFUSED(cudaIpcOpenMemHandle)
REFUSED(cudaKernelSetAttributeForDevice)
REFUSED(cudaLaunchCooperativeKernel)
REFUSED(cudaLibraryGetGlobal)
REFUSED(cudaLibraryGetKernel)
REFUSED(cudaLibraryGetKernelCount)
REFUSED(cudaLibraryGetManaged)
REFUSED(cudaLibraryGetUnifiedFunction)
REFUSED(cudaLibraryLoadData)
REFUSED(cudaLibraryLoadFromFile)
REFUSED(cudaLibraryUnload)
REFUSED(cudaMallocManaged)
REFUSED(cudaMemcpy2DAsync)
REFUSED(cudaMemcpyToSymbol)
REFUSED(cudaOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
REFUSED(cudaProfilerStart)
REFUSED(cudaProfilerStop)
REFUSED(cudaStreamAddCallback)
REFUSED(cudaStreamBeginCaptureToGraph)
REFUSED(cudaStreamUpdateCaptureDependencies)
REFUSED(cudaUserObjectCreate)
REFUSED(cudaUserObjectRelease)

}  // extern "C"
