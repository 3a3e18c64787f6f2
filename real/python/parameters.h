// Parameters are kept where they are: they are there anyway.
//
// They are known when they are saved, as the torch.nn.Parameter that a node saves, or the one that
// it saves a view of. Asking the module once would not do: FSDP's forward runs on parameters that
// are made for it, and frees their memory after.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "real/api/offload_session.h"

namespace ferry::real::python {

// The class, once, before the others.
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
  // Those that were met. An address is not used again while something refers to it weakly.
  std::unordered_map<const c10::TensorImpl*, Weak> met_;
  std::size_t look_at_ = 256;  // so many: time to look for those that are gone
};

}  // namespace ferry::real::python
