// Errors of the core, each thrown as an exception of the caller's own world.
//
// A kind of error, such as CheckpointError, is no std::exception by itself. What is thrown is both
// that kind and the exception that programs of the world catch, c10::Error in LibTorch's: so both
// handlers see it. (Of a class with two bases std::exception, std::exception's would not.)
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

// Options or arguments that make no sense, alone or together.
class ValueError : public Error {
 public:
  using Error::Error;
};

// The exceptions of the world whose tensors are these: `Of<Kind>` is made of a text, and all are a
// `Base`. Each world specialises it; `void` is for code that knows no world.
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

// Runs a call of code that knows no world. What it throws leaves as this world's: as one of these
// kinds, or as a ValueError (std::invalid_argument, too), or as an Error. An error that has its
// world, or that is none of Ferry's, passes as it is.
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
