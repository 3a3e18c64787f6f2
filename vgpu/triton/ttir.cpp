#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

std::int64_t bytes_of(Elem elem) {
  switch (elem) {
    case Elem::kI1:
    case Elem::kI8:
    case Elem::kF8E4M3:
    case Elem::kF8E5M2:
      return 1;
    case Elem::kI16:
    case Elem::kF16:
    case Elem::kBF16:
      return 2;
    case Elem::kI32:
    case Elem::kF32:
      return 4;
    case Elem::kI64:
    case Elem::kF64:
    case Elem::kPointer:
      return 8;
    case Elem::kOther:
      break;
  }
  return 0;
}

std::int64_t Type::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) count *= dim;
  return count;
}

std::string to_string(const Location& location) {
  if (location.file.empty()) return "an unknown line";
  return location.file + ":" + std::to_string(location.line);
}

const Function* Module::find(const std::string& name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace ferry::vgpu::triton
