// An extension of LibTorch's whose operators have CUDA kernels as nvcc makes them: registered with
// the runtime, and launched. No GPU's code stands behind them. (tests/vgpu/programs/extension.py)
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

extern "C" {

void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, dim3*,
                            dim3*, int*);

}  // extern "C"

namespace {

using at::Tensor;

const char kernel = 0;  // its address is the kernel's
[[maybe_unused]] const bool registered = [] {
  char name[] = "_ZN12_GLOBAL__N_15scaleIfEEvPT_i";
  __cudaRegisterFunction(__cudaRegisterFatBinary(nullptr), &kernel, name, name, -1, nullptr,
                         nullptr, nullptr, nullptr, nullptr);
  return true;
}();

cudaError_t launch() { return cudaLaunchKernel(&kernel, {1}, {1}, nullptr, 0, nullptr); }

Tensor checked(const Tensor& x) {
  const cudaError_t error = launch();
  TORCH_CHECK(error == cudaSuccess, cudaGetErrorString(error));
  return at::empty_like(x);
}

Tensor unchecked(const Tensor& x) {
  static_cast<void>(launch());
  return at::zeros_like(x);
}

Tensor& unchecked_(Tensor& x, std::int64_t) {
  static_cast<void>(launch());
  return x;
}

}  // namespace

TORCH_LIBRARY(ferry_extension, library) {
  library.def("twice(Tensor x) -> Tensor");
  library.def("unchecked(Tensor x) -> Tensor");
  library.def("add_(Tensor(a!) x, int y) -> Tensor(a!)");
  library.def("positive(Tensor x) -> Tensor");
  library.def("composed(Tensor x) -> Tensor");
  library.def("failing(Tensor x) -> Tensor");
  library.def("alone(Tensor x) -> Tensor");
  library.def("alone_unchecked(Tensor x) -> Tensor");
  library.def("shaped(Tensor x) -> Tensor");
  // These have no CUDA kernel.
  library.def("tripled(Tensor x) -> Tensor");
  library.def("add_to(Tensor x, *, Tensor(a!) y) -> ()");
  library.def("first(Tensor(a) x) -> Tensor(a)");
}

TORCH_LIBRARY_IMPL(ferry_extension, CPU, library) {
  library.impl("twice", [](const Tensor& x) { return x * 2; });
  library.impl("unchecked", [](const Tensor& x) { return x * 3; });
  library.impl("add_", [](Tensor& x, std::int64_t y) -> Tensor& { return x.add_(y); });
  library.impl("positive", [](const Tensor& x) { return x.masked_select(x > 0); });
  library.impl("composed", [](const Tensor& x) { return x * 0; });
  library.impl("failing", [](const Tensor& x) { return x * 0; });
  library.impl("tripled", [](const Tensor& x) { return x * 3; });
  library.impl("add_to", [](const Tensor& x, Tensor& y) { y.add_(x); });
  library.impl("first", [](const Tensor& x) { return x.select(0, 0); });
}

TORCH_LIBRARY_IMPL(ferry_extension, Meta, library) {
  library.impl("tripled", [](const Tensor& x) { return at::empty_like(x); });
  library.impl("shaped", [](const Tensor& x) { return at::empty_like(x); });
}

TORCH_LIBRARY_IMPL(ferry_extension, CUDA, library) {
  library.impl("twice", checked);
  library.impl("unchecked", unchecked);
  library.impl("add_", unchecked_);
  library.impl("positive", checked);
  library.impl("composed", [](const Tensor& x) { return x * 5; });
  library.impl("failing", [](const Tensor& x) -> Tensor { TORCH_CHECK(false, "not ", x.dim()); });
  library.impl("alone", checked);
  library.impl("alone_unchecked", unchecked);
  library.impl("shaped", checked);
}
