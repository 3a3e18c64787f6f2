// The functions, arguments and results that ferry::checkpoint accepts. Programs use only
// ferry::Checkpointable, at the end of this file; the rest implements checkpoint.h.
#pragma once

#include <torch/types.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace ferry {

namespace checkpoint_impl {

using Tensors = std::vector<torch::Tensor>;

template <class T>
inline constexpr bool kTensor = std::is_same_v<T, torch::Tensor>;

// True if the graph can own a copy of each.
template <class... T>
inline constexpr bool kKept = (std::is_constructible_v<std::decay_t<T>, T> && ...);

// The type in which the function receives an argument.
template <class T>
using Handed = std::conditional_t<kTensor<T>, T&, const T&>;

// Copies from a const object: torch::nn::SequentialImpl would take a mutable one for its first
// module.
template <class T>
decltype(auto) to_keep(T&& function) {
  if constexpr (std::is_lvalue_reference_v<T> && std::copy_constructible<std::decay_t<T>>) {
    return std::as_const(function);
  } else {
    return std::forward<T>(function);
  }
}

template <class T>
T& referred(T& function) {
  return function;
}
template <class T>
T& referred(std::reference_wrapper<T>& function) {
  return function;
}

template <class Function, class... Arguments>
concept HoldsModule = requires(Function& function, Arguments&... arguments) {
  function->forward(arguments...);
};
template <class Function, class... Arguments>
concept IsModule = requires(Function& function, Arguments&... arguments) {
  function.forward(arguments...);
};
// A torch::nn::ModuleHolder always claims to be callable, whatever module it holds.
template <class Function>
concept ModuleHolder = requires {
  typename Function::ContainedType;
  requires std::is_base_of_v<torch::nn::Module, typename Function::ContainedType>;
};
template <class Function, class... Arguments>
concept IsFunction = !ModuleHolder<Function> && std::invocable<Function&, Arguments&...>;

template <class Function, class... Arguments>
concept Callable = HoldsModule<Function, Arguments...> || IsFunction<Function, Arguments...> ||
    IsModule<Function, Arguments...>;

// Calls the function, or the `forward` of a module.
template <class Function, class... Arguments>
requires Callable<Function, Arguments...>
decltype(auto) call_with(Function& function, Arguments&... arguments) {
  if constexpr (HoldsModule<Function, Arguments...>) {
    return function->forward(arguments...);
  } else if constexpr (IsFunction<Function, Arguments...>) {
    return std::invoke(function, arguments...);
  } else {
    return function.forward(arguments...);
  }
}

template <class Function, class... Arguments>
concept CallableAsKept = requires(Function& function, Arguments... arguments) {
  call_with(referred(function), arguments...);
};

// A function and its arguments. The tensors among them are left empty; each call passes them.
template <class Function, class... Arguments>
class Call {
 public:
  using Result = std::remove_cvref_t<decltype(call_with(referred(std::declval<Function&>()),
                                                        std::declval<Handed<Arguments>>()...))>;

  template <class F, class... A>
  explicit Call(Tensors& inputs, F&& function, A&&... arguments)
      : function_(to_keep(std::forward<F>(function))), arguments_(std::forward<A>(arguments)...) {
    std::apply([&](auto&... argument) { (take(inputs, argument), ...); }, arguments_);
  }

  Result operator()(Tensors inputs) {
    return call(inputs, std::index_sequence_for<Arguments...>());
  }

 private:
  template <class Argument>
  static void take(Tensors& inputs, Argument& argument) {
    if constexpr (kTensor<Argument>) inputs.push_back(std::exchange(argument, {}));
  }

  // The index of argument `I` among the tensors.
  template <std::size_t I>
  static constexpr std::size_t place() {
    constexpr std::array<bool, sizeof...(Arguments) + 1> tensors{kTensor<Arguments>..., false};
    std::size_t before = 0;
    for (std::size_t i = 0; i < I; ++i) before += tensors[i] ? 1 : 0;
    return before;
  }
  template <std::size_t I>
  decltype(auto) argument(Tensors& inputs) {
    if constexpr (kTensor<std::tuple_element_t<I, std::tuple<Arguments...>>>) {
      return (inputs[place<I>()]);
    } else {
      return std::as_const(std::get<I>(arguments_));
    }
  }
  template <std::size_t... I>
  Result call([[maybe_unused]] Tensors& inputs, std::index_sequence<I...>) {
    return call_with(referred(function_), argument<I>(inputs)...);
  }

  Function function_;
  std::tuple<Arguments...> arguments_;
};

// Results that a reentrant function may have: a tensor, or a vector, an array or a tuple of
// tensors.
template <class Result>
inline constexpr bool kTensors = kTensor<Result> || std::is_same_v<Result, Tensors>;
template <class... Each>
inline constexpr bool kTensors<std::tuple<Each...>> = (kTensor<Each> && ...);
template <class First, class Second>
inline constexpr bool kTensors<std::pair<First, Second>> = kTensor<First>&& kTensor<Second>;
template <class Each, std::size_t N>
inline constexpr bool kTensors<std::array<Each, N>> = kTensor<Each>;

// Converts such a result to a vector of tensors, and back.
template <class Result>
requires kTensors<Result> Tensors to_tensors(Result result) {
  if constexpr (std::is_same_v<Result, Tensors>) {
    return result;
  } else if constexpr (kTensor<Result>) {
    return {std::move(result)};
  } else {
    return std::apply([](auto&... tensor) { return Tensors{tensor...}; }, result);
  }
}
template <class Result>
Result from_tensors(Tensors tensors) {
  if constexpr (kTensor<Result>) {
    return std::move(tensors.front());
  } else if constexpr (std::is_same_v<Result, Tensors>) {
    return tensors;
  } else {
    Result result;
    std::size_t i = 0;
    std::apply([&](auto&... tensor) { ((tensor = std::move(tensors[i++])), ...); }, result);
    return result;
  }
}

}  // namespace checkpoint_impl

// True if ferry::checkpoint(function, arguments...) compiles for these types.
template <class Function, class... Arguments>
concept Checkpointable = checkpoint_impl::kKept<Function, Arguments...> &&
    checkpoint_impl::CallableAsKept<std::decay_t<Function>,
                                    checkpoint_impl::Handed<std::decay_t<Arguments>>...>;

}  // namespace ferry
