#include "vgpu/operators/temporaries.h"

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <optional>
#include <span>
#include <utility>

#include "real/tensors/dtype.h"
#include "scenarios/cuda_memory.h"
#include "vgpu/operators/workspaces.h"

namespace ferry::vgpu {
namespace {

// Returns what the formulas need. A dtype that a program cannot have becomes one of 4 or 8 bytes.
Layout dense_layout(const at::Tensor& tensor) {
  Layout layout;
  layout.dtype = real::to_dtype(tensor.scalar_type())
                     .value_or(tensor.element_size() > 4 ? DType::kF64 : DType::kF32);
  layout.shape = tensor.sizes().vec();
  layout.strides = tensor.strides().vec();
  return layout;
}

class Layouts {
 public:
  explicit Layouts(const std::vector<c10::IValue>& values) {
    for (const c10::IValue& value : values) {
      const bool dense = value.isTensor() && value.toTensor().defined() &&
                         value.toTensor().layout() == at::kStrided;
      all_.push_back(dense ? std::optional(dense_layout(value.toTensor())) : std::nullopt);
    }
    for (const std::optional<Layout>& each : all_) pointers_.push_back(each ? &*each : nullptr);
  }
  std::span<const Layout* const> pointers() const { return pointers_; }

 private:
  std::vector<std::optional<Layout>> all_;
  std::vector<const Layout*> pointers_;
};

}  // namespace

std::vector<std::int64_t> temporaries(const std::string& name,
                                      const std::vector<c10::IValue>& arguments,
                                      const std::vector<c10::IValue>& results) {
  if (!keeps_workspaces() || !takes_cuda_memory(name)) return {};
  const auto* const card = at::cuda::getCurrentDeviceProperties();
  return temporaries_of(name, Layouts(arguments).pointers(), Layouts(results).pointers(),
                        {card->multiProcessorCount, card->maxThreadsPerMultiProcessor});
}

Temporaries::Temporaries(const std::vector<std::int64_t>& steps,
                         const c10::cuda::CUDAStream& stream) {
  for (const std::int64_t step : steps) {
    if (step < 0) {
      void*& piece = taken_[static_cast<std::size_t>(-step) - 1];
      c10::cuda::CUDACachingAllocator::raw_delete(std::exchange(piece, nullptr));
    } else {
      taken_.push_back(c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(
          static_cast<std::size_t>(step), stream.stream()));
    }
  }
}

Temporaries::~Temporaries() {
  for (auto piece = taken_.rbegin(); piece != taken_.rend(); ++piece) {
    if (*piece != nullptr) c10::cuda::CUDACachingAllocator::raw_delete(*piece);
  }
}

}  // namespace ferry::vgpu
