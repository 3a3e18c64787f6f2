// Errors for LibTorch programs: each of Ferry's errors is also a c10::Error, and a ValueError is
// also LibTorch's ValueError.
#pragma once

#include <c10/util/Exception.h>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "shared/seam/error.h"

namespace at {
class Tensor;
}

namespace ferry::real {

// LibTorch's exception without the C++ backtrace, which takes milliseconds to make.
template <class Exception>
class WithoutBacktrace : public Exception {
 public:
  explicit WithoutBacktrace(std::string text) : Exception(std::move(text), nullptr) {}
};

}  // namespace ferry::real

template <>
struct ferry::Exceptions<at::Tensor> {
  using Base = c10::Error;
  template <class Kind>
  using Of = real::WithoutBacktrace<
      std::conditional_t<std::derived_from<Kind, ValueError>, c10::ValueError, c10::Error>>;
};

namespace ferry::real {

template <class Kind>
auto torch_error(Kind kind) {
  return make_error<at::Tensor>(std::move(kind));
}

// See shared/seam/error.h.
template <class... Kinds, class Call>
decltype(auto) with_torch_errors(Call&& call) {
  return with_errors<at::Tensor, Kinds...>(std::forward<Call>(call));
}

}  // namespace ferry::real
