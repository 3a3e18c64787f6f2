// Records the tensors from outside that a checkpointed function reads in forward, with their
// versions. A recompute that would read another version throws an error that names the tensor.
//
// It observes LibTorch's operators while forward runs on this thread. A tensor is from outside if
// none of them made it. Tensors that the function itself writes, such as a counter or running
// statistics, are not checked, because each run writes them again. Tensors that have died are
// ignored.
//
// It does not see reads without an operator (data_ptr, numpy), writes that change no version
// (`.data`, some kernels), or operators on other threads.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace ferry::real {

class OutsideReads {
 public:
  OutsideReads() = default;
  OutsideReads(const OutsideReads&) = delete;
  OutsideReads& operator=(const OutsideReads&) = delete;

  // While it lives, operators of the calling thread are recorded. If several nest, each records.
  class Listening {
   public:
    explicit Listening(OutsideReads& reads);
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    static std::unique_ptr<at::ObserverContext> note_inputs(const at::RecordFunction& function);
    static void note_outputs(const at::RecordFunction& function, at::ObserverContext* context);

    OutsideReads& reads_;
    Listening* outer_;
    at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
  };

  // Throws CheckpointError if one of the tensors was written since forward. Before forward has
  // ended, as in a backward inside the function, it never throws, because the function's own writes
  // are not known yet.
  void check() const;

 private:
  struct Read {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    std::uint32_t version = 0;
    std::string what;  // "Float [64, 64], in aten::mul"
  };

  void read(const at::Tensor& tensor, const at::RecordFunction& function);
  void end();

  // Used in forward only. It holds addresses of tensors that may have died. A later tensor at the
  // same address then counts as made here, which is right: nothing outside makes tensors meanwhile.
  std::unordered_set<const c10::TensorImpl*> known_;
  std::vector<Read> reads_;
  bool ended_ = false;
};

}  // namespace ferry::real
