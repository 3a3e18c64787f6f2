// Layers of a pipeline that have several inputs or outputs: a vector, a tuple or a pair of tensors.
//
//   std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x);                // A
//   torch::Tensor forward(const std::tuple<torch::Tensor, torch::Tensor>& values);           // B
//
// As in a torch::nn::Sequential, B gets what A returns. Between stages the tensors are copied one
// by one, and the first layer of the next stage gets them in the same form.
#pragma once

#include <torch/nn/modules/container/any_value.h>
#include <torch/types.h>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

namespace pipe_impl {

using Tensors = std::vector<torch::Tensor>;

template <class Item>
inline constexpr bool kOfTensors = std::is_same_v<Item, torch::Tensor>;
template <class... Items>
inline constexpr bool kOfTensors<std::tuple<Items...>> = sizeof...(Items) > 0 &&
                                                         (kOfTensors<Items> && ...);
template <class First, class Second>
inline constexpr bool kOfTensors<std::pair<First, Second>> = kOfTensors<First>&& kOfTensors<Second>;

}  // namespace pipe_impl

// A tuple or pair of tensors, or of such tuples: torch::nn::LSTM returns a tuple of a tensor and a
// tuple.
template <class Value>
concept TensorTuple = !std::same_as<Value, torch::Tensor> && pipe_impl::kOfTensors<Value>;

namespace pipe_impl {

template <class Value>
void append(Tensors& tensors, Value& value) {
  if constexpr (TensorTuple<Value>) {
    std::apply([&](auto&... each) { (append(tensors, each), ...); }, value);
  } else if constexpr (std::same_as<Value, Tensors>) {
    tensors = std::move(value);
  } else {
    tensors.push_back(std::move(value));
  }
}

// Moves the next tensors of the list into the value.
template <class Value>
void fill(Value& value, std::size_t& next, Tensors& from) {
  if constexpr (TensorTuple<Value>) {
    std::apply([&](auto&... each) { (fill(each, next, from), ...); }, value);
  } else if constexpr (std::same_as<Value, Tensors>) {
    value = std::move(from);
  } else {
    value = std::move(from.at(next++));
  }
}

template <class Value>
Tensors to_list(Value value) {
  Tensors tensors;
  append(tensors, value);
  return tensors;
}

// How to convert the value that a layer takes or returns, without its type.
struct Form {
  // Returns false, and takes nothing, if the value has another form.
  bool (*take)(torch::nn::AnyValue& value, Tensors& tensors);
  torch::nn::AnyValue (*give)(Tensors tensors);
};

template <class Value>
bool take(torch::nn::AnyValue& value, Tensors& tensors) {
  Value* const found = value.try_get<Value>();
  if (found) append(tensors, *found);
  return found != nullptr;
}
template <class Value>
torch::nn::AnyValue give(Tensors tensors) {
  Value value;
  std::size_t next = 0;
  fill(value, next, tensors);
  return torch::nn::AnyValue(std::move(value));
}

template <class Value>
inline constexpr Form kForm{&take<Value>, &give<Value>};

}  // namespace pipe_impl

}  // namespace ferry
