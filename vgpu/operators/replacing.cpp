#include "vgpu/operators/replacing.h"

#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::vgpu {
namespace {

class Quiet final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// Each namespace has a library of its own. Never destroyed, because operators run until the process
// ends.
torch::Library& library_of(const std::string& space) {
  static auto* const all = new std::map<std::string, torch::Library*>;
  torch::Library*& library = (*all)[space];
  if (library == nullptr) {
    library =
        new torch::Library(torch::Library::IMPL, space, c10::DispatchKey::CUDA, __FILE__, __LINE__);
  }
  return *library;
}

}  // namespace

void replace_kernel(const c10::OperatorHandle& op, torch::CppFunction kernel) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  const std::string name = toString(op.operator_name());
  library_of(name.substr(0, name.find("::"))).impl(name.c_str(), std::move(kernel));
}

}  // namespace ferry::vgpu
