// Hooks that keep parameters on their device, where they are anyway.
//
// Parameters are recognised when they are saved: the saved tensor is a torch.nn.Parameter or a view
// of one. Asking the module once is not enough, because the forward of FSDP uses parameters that
// are made for it, and frees their memory afterwards.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "real/api/offload_session.h"

namespace ferry::real::python {

// Looks up the class. Call it once, before the others.
void prepare_parameters();

class ExemptParameters final : public Hooks<at::Tensor> {
 public:
  explicit ExemptParameters(std::shared_ptr<OffloadSession> session)
      : session_(std::move(session)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  void meet(const at::Tensor& parameter);

  const std::shared_ptr<OffloadSession> session_;
  std::mutex mutex_;
  // The known parameters. An address is not reused while a weak reference to it exists.
  std::unordered_map<const c10::TensorImpl*, Weak> met_;
  std::size_t look_at_ = 256;  // at this size, entries of dead parameters are removed
};

}  // namespace ferry::real::python
