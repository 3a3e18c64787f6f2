// What autograd holds for a saved tensor of ours in a Python process.
//
// Ours run without the interpreter's lock: an autograd.Function saves, and unpacks, with it held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "real/autograd/saved_by_pair.h"

namespace ferry::real::python {

class SavedInPython final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedInPython(std::shared_ptr<Hooks<at::Tensor>> pair);
  SavedInPython(const SavedInPython&) = delete;
  SavedInPython& operator=(const SavedInPython&) = delete;
  ~SavedInPython() override;

  void call_pack_hook(const at::Tensor& tensor) override;
  at::Tensor call_unpack_hook() override;
  std::optional<std::pair<c10::SafePyObject, c10::SafePyObject>> retrieve_unpack_hook_data()
      const override {
    return saved_.retrieve_unpack_hook_data();
  }

 private:
  union {
    SavedByPair saved_;  // in a child of the process that packed it, it is left as it is
  };
  const std::uint64_t generation_;
};

}  // namespace ferry::real::python
