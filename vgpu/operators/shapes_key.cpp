#include "vgpu/operators/shapes_key.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <cstdint>
#include <type_traits>

namespace ferry::vgpu {
namespace {

// Builds the key. Each value follows a letter that says its kind; a length comes before what has
// one.
class ShapesKey {
 public:
  template <class Number>
  void put(char letter, Number number) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes_.push_back(letter);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  void put(const at::Tensor& tensor) {
    if (!tensor.defined()) return bytes_.push_back('u');
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const auto bits =
        static_cast<std::uint8_t>((tensor.is_conj() ? 1 : 0) + (tensor.is_neg() ? 2 : 0) +
                                  (impl.is_wrapped_number() ? 4 : 0) + (tensor.is_cuda() ? 8 : 0));
    put('t', static_cast<std::uint8_t>(tensor.scalar_type()));
    put('b', bits);
    put('d', static_cast<std::uint32_t>(tensor.dim()));
    append(tensor.sizes());
    append(tensor.strides());
  }

  // Returns false if the value is of an unknown kind.
  bool put(const c10::IValue& value) {
    if (value.isTensor()) {
      put(value.toTensor());
    } else if (value.isNone()) {
      bytes_.push_back('n');
    } else if (value.isInt()) {
      put('i', value.toInt());
    } else if (value.isBool()) {
      put('o', value.toBool());
    } else if (value.isDouble()) {
      put('f', value.toDouble());
    } else if (value.isComplexDouble()) {
      put('c', value.toComplexDouble());
    } else if (value.isDevice() || value.isGenerator()) {
      bytes_.push_back('v');  // all of them get the same stand-in
    } else if (value.isString()) {
      const std::string& text = value.toStringRef();
      put('s', text.size());
      bytes_.append(text);
    } else if (value.isList()) {
      return put_list(value);
    } else {
      return false;
    }
    return true;
  }

  std::string take() { return std::move(bytes_); }

 private:
  void append(c10::IntArrayRef numbers) {
    bytes_.append(reinterpret_cast<const char*>(numbers.data()),
                  numbers.size() * sizeof(std::int64_t));
  }

  bool put_list(const c10::IValue& value) {
    const auto list = value.toListRef();
    put('l', list.size());
    for (const c10::IValue& each : list) {
      if (!put(each)) return false;
    }
    return true;
  }

  std::string bytes_;
};

}  // namespace

std::optional<std::string> shapes_key(const Operator& op,
                                      const std::vector<c10::IValue>& arguments) {
  ShapesKey key;
  key.put('p', &op);
  key.put('y', static_cast<std::uint8_t>(c10::get_default_dtype_as_scalartype()));
  for (const c10::IValue& argument : arguments) {
    if (!key.put(argument)) return std::nullopt;
  }
  return key.take();
}

}  // namespace ferry::vgpu
