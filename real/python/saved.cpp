#include "real/python/saved.h"

#include "real/python/errors.h"
#include "real/python/fork.h"
#include "real/python/gil.h"

namespace ferry::real::python {

SavedInPython::SavedInPython(std::shared_ptr<Hooks<at::Tensor>> pair)
    : saved_(std::move(pair)), generation_(process_generation()) {}

SavedInPython::~SavedInPython() {
  if (generation_ != process_generation()) return;
  const GilReleased released;
  saved_.~SavedByPair();
}

void SavedInPython::call_pack_hook(const at::Tensor& tensor) {
  try {
    const GilReleased released;
    saved_.call_pack_hook(tensor);
  } catch (...) {
    rethrow_to_python();
  }
}

at::Tensor SavedInPython::call_unpack_hook() {
  TORCH_CHECK(generation_ == process_generation(),
              "torch_ferry: a tensor is asked for that the parent process saved before a fork; its "
              "graph can go backward there alone");
  try {
    const GilReleased released;
    return saved_.call_unpack_hook();
  } catch (...) {
    rethrow_to_python();
  }
}

}  // namespace ferry::real::python
