#include "vgpu/operators/shapes.h"

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "vgpu/operators/extensions.h"
#include "vgpu/operators/host_views.h"
#include "vgpu/operators/shapes_key.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

using c10::IValue;

Values mapped(const Values& arguments, const std::function<at::Tensor(const at::Tensor&)>& map) {
  Values values;
  for (const IValue& value : arguments) values.push_back(map_tensors(value, map));
  return values;
}

std::shared_ptr<const Shapes> shapes_by(c10::DeviceType type, const Operator& op,
                                        const Values& arguments) {
  std::map<const c10::TensorImpl*, at::Tensor> made;
  const auto stand = [&](const at::Tensor& tensor) {
    at::Tensor& one = made[tensor.unsafeGetTensorImpl()];
    if (!one.defined()) one = stand_in(tensor, type);
    return one;
  };
  const auto shapes = std::make_shared<Shapes>();
  shapes->arguments = on_device(op, mapped(arguments, stand), type);
  const bool meta = type == c10::kMeta;
  try {
    const at::Generator any = meta ? at::Generator() : at::detail::createCPUGenerator(0);
    shapes->results =
        call(op, shapes->arguments, meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU, any);
  } catch (const c10::NotImplementedError&) {
    if (!meta) throw;
    return nullptr;
  } catch (const std::exception&) {
    // A Meta kernel in Python throws an error of its own kind; so may a way that reads a value.
    if (!meta || !(op.may_be_by_data || op.way != nullptr)) throw;
    forget_error();
    return nullptr;
  }
  return shapes;
}

std::shared_ptr<const Shapes> found_anew(const Operator& op, const Values& arguments) {
  const bool by_way = op.way != nullptr && values() != KernelValues::kComputed;
  if (op.has_meta || by_way) {
    if (auto shapes = shapes_by(c10::kMeta, op, arguments)) return shapes;
  }
  if (op.may_be_by_data) return nullptr;
  bool outs = false;
  for (const bool out : op.outs) outs = outs || out;
  if (!op.makes_tensors && !outs) return nullptr;
  return shapes_by(c10::kCPU, op, arguments);
}

bool is_strided(const Shapes& shapes) {
  bool all = true;
  for (const Values* values : {&shapes.arguments, &shapes.results}) {
    for (const IValue& value : *values) {
      each_tensor(value,
                  [&](const at::Tensor& tensor) { all = all && tensor.layout() == at::kStrided; });
    }
  }
  return all;
}

// Drops the bytes: what a CPU kernel returned has some.
Shapes without_bytes(const Shapes& shapes) {
  const auto bare = [](const at::Tensor& tensor) { return stand_in(tensor, c10::kMeta); };
  return {mapped(shapes.arguments, bare), mapped(shapes.results, bare)};
}

// The shapes that are known, for all operators. Emptied when full, in case shapes never repeat.
class KnownShapes {
 public:
  std::shared_ptr<const Shapes> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = shapes_.find(key);
    return found != shapes_.end() ? found->second : nullptr;
  }
  void add(std::string key, std::shared_ptr<const Shapes> shapes) {
    constexpr std::size_t kMost = 20'000;
    const std::lock_guard lock(mutex_);
    if (shapes_.size() >= kMost) shapes_.clear();
    shapes_.emplace(std::move(key), std::move(shapes));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Shapes>> shapes_;
};

// Never destroyed, because operators run until the process ends.
KnownShapes& known_shapes() {
  static auto* const all = new KnownShapes;
  return *all;
}

}  // namespace

Values on_device(const Operator& op, Values arguments, c10::DeviceType type) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    IValue& value = arguments[i];
    if (value.isDevice()) value = c10::Device(type);
    if (value.isGenerator()) value = IValue();
    if (op.op.schema().arguments()[i].name() == "pin_memory") value = IValue();
  }
  return arguments;
}

Values call(const Operator& op, Values arguments, c10::DispatchKey key,
            const at::Generator& generator) {
  torch::jit::Stack stack = std::move(arguments);
  if (op.way != nullptr && (key != c10::DispatchKey::Meta || !op.has_meta)) {
    op.way(stack, generator);
  } else {
    for (std::size_t i = 0; i < stack.size() && generator.defined(); ++i) {
      const std::string type = op.op.schema().arguments()[i].type()->str();
      if (type.starts_with("Generator")) stack[i] = generator;
    }
    const bool by_stand_in = op.by.stand_in && key == c10::DispatchKey::CPU;
    (by_stand_in ? *op.by.stand_in : op.op).redispatchBoxed(c10::DispatchKeySet(key), &stack);
  }
  return stack;
}

std::shared_ptr<const Shapes> find_shapes(const Operator& op, const Values& arguments) {
  if (op.by_data) return nullptr;
  auto key = op.may_be_by_data ? std::nullopt : shapes_key(op, arguments);
  if (!key) return found_anew(op, arguments);
  if (auto shapes = known_shapes().find(*key)) return shapes;
  auto shapes = found_anew(op, arguments);
  if (shapes && is_strided(*shapes))
    known_shapes().add(std::move(*key), std::make_shared<const Shapes>(without_bytes(*shapes)));
  return shapes;
}

}  // namespace ferry::vgpu
