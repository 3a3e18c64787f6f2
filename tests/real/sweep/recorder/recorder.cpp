// Writes down what the dispatcher is called with: every overload, with its arguments as they were
// before it ran. A Python program loads it (record.py), and runs whatever it has.
//
// The dispatcher tells a RecordFunction of each call from outside, autograd's own and those that a
// composite kernel makes as well: each is a call that a C++ program can make. Of an overload the
// first few calls are kept whose arguments differ in kind (ranks, dtypes, what is absent).
//
// The file is PyTorch's own pickle: a list of (name, overload, arguments). Tensors have their
// sizes, strides and offsets, each a storage of its own.
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace {

using c10::IValue;

constexpr std::int64_t kBytesMax = 1 << 20;  // of a tensor's storage

struct Recording {
  std::mutex mutex;
  std::size_t calls_max = 0;
  std::map<std::string, std::set<std::string>> kinds;
  c10::impl::GenericList calls{c10::AnyType::get()};
};

Recording& recording() {
  static auto* const recording = new Recording;
  return *recording;
}

std::optional<std::string> kind_of(const IValue& value);

std::optional<std::string> kind_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "u";
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu() || tensor.is_quantized() ||
      tensor.is_nested() || !tensor.has_storage() || c10::isBitsType(tensor.scalar_type()) ||
      c10::isFloat8Type(tensor.scalar_type()) ||
      c10::isBarebonesUnsignedType(tensor.scalar_type()) ||
      static_cast<std::int64_t>(tensor.storage().nbytes()) > kBytesMax) {
    return std::nullopt;
  }
  return "t" + std::to_string(tensor.dim()) + c10::toString(tensor.scalar_type()) +
         (tensor.numel() == 0 ? "empty" : "");
}

// None: a value that a file cannot have, or that is no CPU program's.
std::optional<std::string> kind_of(const IValue& value) {
  if (value.isTensor()) return kind_of(value.toTensor());
  if (value.isList()) {
    std::string kinds = "[";
    for (const IValue& inner : value.toListRef()) {
      const auto kind = kind_of(inner);
      if (!kind) return std::nullopt;
      kinds += *kind;
    }
    return kinds + "]";
  }
  if (value.isInt()) return value.toInt() < 0 ? "-" : "i";
  if (value.isBool()) return value.toBool() ? "T" : "F";
  if (value.isString()) return value.toStringRef();
  if (value.isDouble()) return "d";
  if (value.isComplexDouble()) return "c";
  if (value.isNone()) return "n";
  if (value.isDevice()) return value.toDevice().is_cpu() ? std::optional("D") : std::nullopt;
  if (value.isGenerator()) return "g";
  return std::nullopt;
}

at::Tensor snapshot(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  const auto bytes = static_cast<std::int64_t>(plain.storage().nbytes());
  const at::Tensor copy =
      at::empty({bytes / plain.element_size()}, plain.options()).set_requires_grad(false);
  std::memcpy(copy.mutable_data_ptr(), plain.storage().data(), copy.nbytes());
  // A tensor of no elements begins nowhere: 2.15 reads no pickle that says where.
  const std::int64_t begin = plain.numel() > 0 ? plain.storage_offset() : 0;
  return copy.as_strided(plain.sizes(), plain.strides(), begin);
}

IValue snapshot(const IValue& value) {
  if (value.isTensor() && !value.toTensor().defined()) return {};  // pickles have no such tensors
  if (value.isTensor()) return snapshot(value.toTensor());
  if (value.isGenerator()) return {};
  if (!value.isList()) return value;
  c10::impl::GenericList list(c10::AnyType::get());
  for (const IValue& inner : value.toListRef()) list.push_back(snapshot(inner));
  return list;
}

void write_down(const at::RecordFunction& op) {
  const auto name = op.operator_name();
  if (!name || !name->name.starts_with("aten::")) return;
  std::string kind;
  for (const IValue& input : op.inputs()) {
    const auto of = kind_of(input);
    if (!of) return;
    kind += *of + ",";
  }
  Recording& here = recording();
  const std::lock_guard lock(here.mutex);
  auto& kinds = here.kinds[c10::toString(*name)];
  if (kinds.size() >= here.calls_max || !kinds.insert(kind).second) return;
  c10::impl::GenericList arguments(c10::AnyType::get());
  for (const IValue& input : op.inputs()) arguments.push_back(snapshot(input));
  here.calls.push_back(c10::ivalue::Tuple::create({name->name, name->overload_name, arguments}));
}

std::unique_ptr<at::ObserverContext> at_start(const at::RecordFunction& op) {
  const at::DisableRecordFunctionGuard alone;
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard no_python(c10::python_ks);
  write_down(op);
  return nullptr;
}

}  // namespace

extern "C" {

// From now on at most `calls_max` calls of an overload are kept.
void ferry_record(std::size_t calls_max) {
  recording().calls_max = calls_max;
  at::addGlobalCallback(at::RecordFunctionCallback(&at_start).needsInputs(true).scopes(
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

// How many calls there are.
std::size_t ferry_write(const char* path) {
  const at::DisableRecordFunctionGuard alone;
  Recording& here = recording();
  const std::lock_guard lock(here.mutex);
  const std::vector<char> bytes = torch::jit::pickle_save(IValue(here.calls));
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return here.calls.size();
}
}
