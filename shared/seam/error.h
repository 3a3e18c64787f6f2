// Errors of the core. Each is thrown as an exception of the world that calls the core.
//
// A kind of error, such as CheckpointError, does not derive from std::exception. The thrown object
// derives from the kind and from the exception that programs of that world catch (c10::Error with
// LibTorch), so handlers for either of them work. If the kind were a std::exception too, the object
// would have that base twice, and a handler for std::exception would not catch it.
#pragma once

#include <concepts>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

class Error {
 public:
  explicit Error(std::string text) : text_(std::move(text)) {}
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  virtual ~Error() = default;
  virtual const char* what() const noexcept { return text_.c_str(); }

 private:
  std::string text_;
};

// An option or argument is invalid, or does not fit the others.
class ValueError : public Error {
 public:
  using Error::Error;
};

// The exceptions of the world that has this type of tensor. Every exception derives from `Base`,
// and `Of<Kind>` is constructed from a text. Each world specialises this template; `void` is for
// code that belongs to no world.
template <class Tensor>
struct Exceptions;

template <>
struct Exceptions<void> {
  using Base = std::exception;
  template <class Kind>
  using Of = std::conditional_t<std::derived_from<Kind, ValueError>, std::invalid_argument,
                                std::runtime_error>;
};

template <class Kind, class Exception>
class Thrown final : public Kind, public Exception {
 public:
  explicit Thrown(Kind kind) : Kind(std::move(kind)), Exception(std::string(Kind::what())) {}
  const char* what() const noexcept override { return Exception::what(); }
};

// Makes the exception for an error:
//   throw make_error<Tensor>(CheckpointError("…"));
template <class Tensor, class Kind>
auto make_error(Kind kind) {
  return Thrown<Kind, typename Exceptions<Tensor>::template Of<Kind>>(std::move(kind));
}

namespace error_detail {

template <class Tensor, class Kind>
void throw_if(const Error& error) {
  if (const auto* const kind = dynamic_cast<const Kind*>(&error)) {
    throw make_error<Tensor>(Kind(*kind));
  }
}

}  // namespace error_detail

// Runs a call of code that belongs to no world, and rethrows its errors as exceptions of this
// world. An error of one of `Kinds`, or a ValueError, keeps its kind; any other Error becomes a
// plain Error. A std::invalid_argument becomes a ValueError. An exception that already belongs to
// this world, or is not from Ferry, passes unchanged.
template <class Tensor, class... Kinds, class Call>
decltype(auto) with_errors(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const Error& error) {
    if (dynamic_cast<const typename Exceptions<Tensor>::Base*>(&error)) throw;
    (error_detail::throw_if<Tensor, Kinds>(error), ...,
     error_detail::throw_if<Tensor, ValueError>(error));
    throw make_error<Tensor>(Error(error.what()));
  } catch (const std::invalid_argument& error) {
    throw make_error<Tensor>(ValueError(error.what()));
  }
}

}  // namespace ferry
