#include "real/autograd/outside_reads.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <sstream>
#include <utility>

#include "real/autograd/op_inputs.h"
#include "real/tensors/torch_error.h"
#include "shared/checkpoint/errors.h"

namespace ferry::real {
namespace {

thread_local OutsideReads::Listening* innermost = nullptr;

template <class See>
void each_tensor_of(const c10::IValue& value, See&& see) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) see(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) see(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor && tensor->defined()) see(*tensor);
    }
  }
}

std::string describe(const at::Tensor& tensor, const at::RecordFunction& function) {
  std::ostringstream text;
  text << tensor.toString() << tensor.sizes() << ", in " << function.name();
  return text.str();
}

}  // namespace

OutsideReads::Listening::Listening(OutsideReads& reads)
    : reads_(reads), outer_(std::exchange(innermost, this)) {
  if (outer_ != nullptr) return;  // the outer one listens for both
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(note_inputs, note_outputs)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}

OutsideReads::Listening::~Listening() {
  innermost = outer_;
  if (outer_ == nullptr) at::removeCallback(handle_);
  reads_.end();
}

std::unique_ptr<at::ObserverContext> OutsideReads::Listening::note_inputs(
    const at::RecordFunction& function) {
  for (Listening* each = innermost; each != nullptr; each = each->outer_) {
    for (const c10::IValue& value : op_inputs(function)) {
      each_tensor_of(value, [&](const at::Tensor& tensor) { each->reads_.read(tensor, function); });
    }
  }
  return nullptr;
}

void OutsideReads::Listening::note_outputs(const at::RecordFunction& function,
                                           at::ObserverContext*) {
  for (Listening* each = innermost; each != nullptr; each = each->outer_) {
    for (const c10::IValue& value : function.outputs()) {
      each_tensor_of(value, [&](const at::Tensor& tensor) {
        each->reads_.known_.insert(tensor.unsafeGetTensorImpl());
      });
    }
  }
}

void OutsideReads::read(const at::Tensor& tensor, const at::RecordFunction& function) {
  if (!known_.insert(tensor.unsafeGetTensorImpl()).second || tensor.is_inference()) return;
  reads_.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
                    tensor.unsafeGetTensorImpl()->version_counter().current_version(),
                    describe(tensor, function)});
}

// Forgets the tensors that the function itself wrote.
void OutsideReads::end() {
  ended_ = true;
  known_.clear();
  std::erase_if(reads_, [](const Read& read) {
    const auto tensor = read.tensor.lock();
    return !tensor || tensor->version_counter().current_version() != read.version;
  });
  reads_.shrink_to_fit();
}

void OutsideReads::check() const {
  if (!ended_) return;
  for (const Read& read : reads_) {
    const auto tensor = read.tensor.lock();
    const std::uint32_t now = tensor ? tensor->version_counter().current_version() : read.version;
    if (now == read.version) continue;
    throw torch_error(CheckpointError(
        "ferry::checkpoint: the function read a tensor from outside (" + read.what +
        "), which has been written in place since: it is at version " + std::to_string(now) +
        ", and was at version " + std::to_string(read.version) +
        " in forward. A recompute would give the gradients of another forward. Write it after "
        "backward, or give the function a clone of it."));
  }
}

}  // namespace ferry::real
