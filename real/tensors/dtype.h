// Converts LibTorch's element types to a program's (formats/program.h), where one exists.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "formats/program.h"

namespace ferry::real {

inline std::optional<DType> to_dtype(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Double:
      return DType::kF64;
    case c10::ScalarType::Float:
      return DType::kF32;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
      return DType::kF8;
    case c10::ScalarType::Long:
      return DType::kI64;
    case c10::ScalarType::Int:
      return DType::kI32;
    case c10::ScalarType::Short:
      return DType::kI16;
    case c10::ScalarType::Char:
      return DType::kI8;
    case c10::ScalarType::Byte:
      return DType::kU8;
    case c10::ScalarType::Bool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace ferry::real
