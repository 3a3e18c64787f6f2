// The tensors from outside that a checkpointed function read in forward, with their versions: a
// recompute that would read another version is an error that says which tensor.
//
// LibTorch's operators are listened to while forward runs on this thread. A tensor is from outside
// if none of them made it. Those that the function itself writes (a counter, running statistics)
// are not held to their version: each run writes them again. What has died since is read by nobody.
//
// Not seen: what is read without an operator (data_ptr, numpy), what is written without a version
// (`.data`, kernels that do not count), and operators on other threads than the function's.
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

  // While it lives, the calling thread's operators are noted. They nest: all of them note.
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

  // Throws CheckpointError if one of them has been written since forward. Until that has ended (a
  // backward inside the function) nobody knows what the function writes itself: nothing is thrown.
  void check() const;

 private:
  struct Read {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    std::uint32_t version = 0;
    std::string what;  // "Float [64, 64], in aten::mul"
  };

  void read(const at::Tensor& tensor, const at::RecordFunction& function);
  void end();

  // Of forward alone. Addresses of tensors that may have died: one of a later tensor is then taken
  // for made here, as is right, for nothing outside makes tensors meanwhile.
  std::unordered_set<const c10::TensorImpl*> known_;
  std::vector<Read> reads_;
  bool ended_ = false;
};

}  // namespace ferry::real
