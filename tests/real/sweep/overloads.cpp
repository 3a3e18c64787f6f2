#include "tests/real/sweep/overloads.h"

#include <algorithm>
#include <array>

#include "tests/real/sweep/calls.h"

namespace ferry::sweep {
namespace {

using c10::DispatchKey;

constexpr std::array kKeys = {DispatchKey::CPU, DispatchKey::CompositeImplicitAutograd,
                              DispatchKey::CompositeExplicitAutograd,
                              DispatchKey::CompositeExplicitAutogradNonFunctional};

bool has_kernel(const c10::OperatorHandle& op) {
  return std::ranges::any_of(kKeys,
                             [&](DispatchKey key) { return op.hasKernelForDispatchKey(key); });
}

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  if (type.kind() == c10::TypeKind::DictType) return false;
  return std::ranges::any_of(type.containedTypes(),
                             [](const auto& inner) { return holds_tensors(*inner); });
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

bool takes_and_gives_tensors(const c10::FunctionSchema& schema) {
  const auto holds = [](const c10::Argument& x) { return holds_tensors(*x.type()); };
  return std::ranges::any_of(schema.arguments(), holds) &&
         (std::ranges::any_of(schema.returns(), holds) ||
          std::ranges::any_of(schema.arguments(),
                              [&](const auto& x) { return holds(x) && is_written(x); }));
}

bool has_out(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.is_out() || (argument.kwarg_only() && is_written(argument));
  });
}

}  // namespace

Overloads overloads() {
  Overloads found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !has_kernel(*op) || !takes_and_gives_tensors(op->schema())) continue;
    if (has_out(op->schema())) {
      ++found.with_out;
    } else {
      found.tried.emplace(name_of(*op), *op);
    }
  }
  return found;
}

bool takes_names(const c10::OperatorHandle& op) {
  const std::string name = op.operator_name().name + op.operator_name().overload_name;
  return name.find("name") != std::string::npos || name.find("Dimname") != std::string::npos ||
         name.find("align_to") != std::string::npos;
}

std::string why_not_called(const c10::OperatorHandle& op) {
  struct Reason {
    std::string_view part, why;  // of the name
  };
  constexpr Reason kReasons[] = {
      {"quant", "quantized or packed tensors"},
      {"fbgemm", "quantized or packed tensors"},
      {"_weight_int", "quantized or packed tensors"},
      {"_int_mm", "quantized or packed tensors"},
      {"_to_int4pack", "quantized or packed tensors"},
      {"_scaled_mm", "quantized or packed tensors"},
      {"_wrapped_linear", "quantized or packed tensors"},
      {"_moving_avg_obs", "quantized or packed tensors"},
      {"nested", "nested tensors"},
      {"jagged", "nested tensors"},
      {"sparse", "sparse tensors of a layout that is not drawn"},
      {"indices", "sparse tensors of a layout that is not drawn"},
      {"values", "sparse tensors of a layout that is not drawn"},
      {"_fused_adam", "an optimiser's step: nothing is saved"},
      {"_amp_", "an optimiser's step: nothing is saved"},
      {"_overrideable", "no kernel but one that raises: for other devices"},
      {"pin_memory", "an accelerator's memory"},
      {"_make_dual", "forward-mode gradients"},
      {"_fw_primal", "forward-mode gradients"},
      {"_batch_dim", "forward-mode gradients and vmap"},
      {"_sobol_engine", "no gradient, and arguments that are not drawn"},
      {"_is_all_true", "no gradient, and arguments that are not drawn"},
      {"_is_any_true", "no gradient, and arguments that are not drawn"},
      {"_rowwise_prune", "no gradient, and arguments that are not drawn"},
      {"_spdiags", "no gradient, and arguments that are not drawn"},
      {"_resize_output", "no gradient, and arguments that are not drawn"},
      {"randint_like", "no gradient, and arguments that are not drawn"},
      {"_embedding_bag_forward_only", "no gradient, and arguments that are not drawn"},
      {"_transformer_encoder_layer_fwd", "a fast path of inference"},
      {"_native_multi_head_attention", "a fast path of inference"},
      {"_transform_bias_rescale_qkv", "a fast path of inference"},
  };
  if (takes_names(op)) return "names of dimensions, which a boxed call cannot have";
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (argument.type()->kind() == c10::TypeKind::StorageType) return "a storage, not a tensor";
  }
  for (const Reason& reason : kReasons) {
    if (op.operator_name().name.find(reason.part) != std::string::npos)
      return std::string(reason.why);
  }
  return "";
}

}  // namespace ferry::sweep
