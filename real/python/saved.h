// The object that autograd holds for a tensor that Ferry packed in a Python process.
//
// An autograd.Function saves and unpacks with the interpreter's lock. Ferry's hooks run without it,
// so this class releases the lock around them (gil.h). It turns their errors into Python exceptions
// (errors.h). In a child process (fork.h) it drops nothing that the parent packed, and unpacking
// that is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "real/autograd/hooks_slot.h"
#include "real/python/errors.h"
#include "real/python/fork.h"
#include "real/python/gil.h"

namespace ferry::real::python {

class SavedInPython final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedInPython(std::shared_ptr<Hooks<at::Tensor>> pair)
      : saved_(std::move(pair)), generation_(process_generation()) {}
  SavedInPython(const SavedInPython&) = delete;
  SavedInPython& operator=(const SavedInPython&) = delete;
  ~SavedInPython() override {
    if (generation_ != process_generation()) return;
    const GilReleased released;
    saved_.~SavedByPair();
  }

  void call_pack_hook(const at::Tensor& tensor) override {
    try {
      const GilReleased released;
      saved_.call_pack_hook(tensor);
    } catch (...) {
      rethrow_to_python();
    }
  }
  at::Tensor call_unpack_hook() override {
    TORCH_CHECK(
        generation_ == process_generation(),
        "torch_ferry: a tensor was unpacked that the parent process saved before a fork; run this "
        "backward in the parent process");
    try {
      const GilReleased released;
      return saved_.call_unpack_hook();
    } catch (...) {
      rethrow_to_python();
    }
  }
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return saved_.retrieve_unpack_hook_data();
  }

 private:
  union {
    SavedByPair saved_;  // not destroyed in a child of the process that packed it
  };
  const std::uint64_t generation_;
};

}  // namespace ferry::real::python
