// Converts LibTorch's element types to those of programs (formats/program.h). A type without a name
// there becomes one of the same size; on CUDA the state of flash attention is UInt64, for example.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "formats/program.h"

namespace ferry::real {

inline std::optional<DType> to_dtype(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexFloat:
      return DType::kF64;
    case c10::ScalarType::Float:
    case c10::ScalarType::ComplexHalf:
      return DType::kF32;
    case c10::ScalarType::BFloat16:
      return DType::kBF16;
    case c10::ScalarType::Half:
      return DType::kF16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
      return DType::kF8;
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64:
      return DType::kI64;
    case c10::ScalarType::Int:
    case c10::ScalarType::UInt32:
      return DType::kI32;
    case c10::ScalarType::Short:
    case c10::ScalarType::UInt16:
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
