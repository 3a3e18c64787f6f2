#include "vgpu/operators/ways.h"

#include <ATen/Functions.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "vgpu/operators/attention.h"
#include "vgpu/operators/batch_norms.h"
#include "vgpu/operators/others.h"
#include "vgpu/operators/products.h"
#include "vgpu/operators/recurrent.h"

namespace ferry::vgpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

// The scale is 0 if everything is dropped, as in LibTorch.
void native_dropout(Stack& stack, const at::Generator& generator) {
  const Tensor input = stack[0].toTensor();
  const double p = stack[1].toDouble();
  const bool train = !stack[2].isBool() || stack[2].toBool();
  Tensor mask = at::ones(input.sizes(), at::kBool);
  Tensor output = input.clone();
  if (train) {
    mask.bernoulli_(1 - p, generator);
    output = input.mul(mask).mul_(p < 1 ? 1 / (1 - p) : 0.0);
  }
  stack = {output, mask};
}

// The predecessor of native dropout; `p` is the probability that an element stays.
void fused_dropout(Stack& stack, const at::Generator& generator) {
  const Tensor input = stack[0].toTensor();
  const double p = stack[1].toDouble();
  const Tensor mask = at::empty_like(input, at::kByte).bernoulli_(p, generator);
  stack = {input.mul(mask).mul_(1 / p), mask};
}

void masked_scale(Stack& stack, const at::Generator&) {
  stack = {stack[0].toTensor().mul(stack[1].toTensor()).mul_(stack[2].toDouble())};
}

// cuDNN's batch norm returns a reserve besides the two statistics.
void cudnn_batch_norm(Stack& stack, const at::Generator&) {
  auto [output, mean, deviation] =
      at::native_batch_norm(stack[0].toTensor(), stack[1].toTensor(), stack[2].toOptional<Tensor>(),
                            stack[3].toOptional<Tensor>(), stack[4].toOptional<Tensor>(),
                            stack[5].toBool(), stack[6].toDouble(), stack[7].toDouble());
  stack = {output, mean, deviation, at::empty({0}, at::kByte)};
}

void cudnn_batch_norm_backward(Stack& stack, const at::Generator&) {
  // Arguments: input, grad_output, weight, running mean and var, saved mean and var, epsilon,
  // reserve.
  auto [input, weight, bias] = at::native_batch_norm_backward(
      stack[1].toTensor(), stack[0].toTensor(), stack[2].toTensor(), stack[3].toOptional<Tensor>(),
      stack[4].toOptional<Tensor>(), stack[5].toOptional<Tensor>(), stack[6].toOptional<Tensor>(),
      /*train=*/true, stack[7].toDouble(), {true, true, true});
  stack = {input, weight, bias};
}

// Computes dx = r (g w - n mean(g w n)) with n = x r, where r is the inverse deviation and the mean
// is over the normalised dimensions.
void fused_rms_norm_backward(Stack& stack, const at::Generator&) {
  const Tensor gradient = stack[0].toTensor();
  const Tensor input = stack[1].toTensor();
  const auto normalised = static_cast<std::int64_t>(stack[2].toIntVector().size());
  const Tensor deviation = stack[3].toTensor();  // the inverse of the deviation
  const auto weight = stack[4].toOptional<Tensor>();
  const std::vector<bool> wanted = stack[5].toBoolList().vec();
  std::vector<std::int64_t> inner;
  std::vector<std::int64_t> outer;
  for (std::int64_t i = 0; i < input.dim(); ++i) {
    (i < input.dim() - normalised ? outer : inner).push_back(i);
  }
  const Tensor unit = input.mul(deviation);
  const Tensor scaled = weight && weight->defined() ? gradient.mul(*weight) : gradient;
  Tensor of_input;
  Tensor of_weight;
  if (wanted[0]) {
    const Tensor mean = scaled.mul(unit).mean(inner, /*keepdim=*/true);
    of_input = scaled.sub(unit.mul(mean)).mul(deviation).to(input.scalar_type());
  }
  if (wanted[1] && weight && weight->defined()) {
    of_weight = gradient.mul(unit);
    if (!outer.empty()) of_weight = of_weight.sum(outer);
    of_weight = of_weight.to(weight->scalar_type());
  }
  stack = {of_input, of_weight};
}

// Says how the shapes of the results are found: by running the way, or by the Meta kernel.
enum class ShapesBy : std::uint8_t { kRunning, kMeta };

struct KnownWay {
  std::string_view name;
  Way way;
  bool draws = false;
  ShapesBy shapes = ShapesBy::kRunning;
};
constexpr std::array kWays = {
    KnownWay{"aten::native_dropout", native_dropout, true},
    KnownWay{"aten::_fused_dropout", fused_dropout, true},
    KnownWay{"aten::_masked_scale", masked_scale},
    KnownWay{"aten::mm.dtype", mm_to},
    KnownWay{"aten::mm.dtype_out", mm_to_out},
    KnownWay{"aten::bmm.dtype", bmm_to},
    KnownWay{"aten::bmm.dtype_out", bmm_to_out},
    KnownWay{"aten::addmm.dtype", addmm_to},
    KnownWay{"aten::addmm.dtype_out", addmm_to_out},
    KnownWay{"aten::baddbmm.dtype", baddbmm_to},
    KnownWay{"aten::baddbmm.dtype_out", baddbmm_to_out},
    KnownWay{"aten::batch_norm_stats", batch_norm_stats},
    KnownWay{"aten::batch_norm_gather_stats", batch_norm_gather_stats},
    KnownWay{"aten::batch_norm_gather_stats_with_counts", batch_norm_gather_stats},
    KnownWay{"aten::batch_norm_elemt", batch_norm_elemt},
    KnownWay{"aten::batch_norm_elemt.out", batch_norm_elemt_out},
    KnownWay{"aten::batch_norm_backward_reduce", batch_norm_backward_reduce},
    KnownWay{"aten::batch_norm_backward_elemt", batch_norm_backward_elemt},
    KnownWay{"aten::cudnn_batch_norm", cudnn_batch_norm},
    KnownWay{"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
    KnownWay{"aten::native_batch_norm", batch_norm, false, ShapesBy::kMeta},
    KnownWay{"aten::_native_batch_norm_legit", batch_norm_legit, false, ShapesBy::kMeta},
    KnownWay{"aten::_fused_rms_norm_backward", fused_rms_norm_backward},
    KnownWay{"aten::_scaled_dot_product_efficient_attention", efficient_attention, true},
    KnownWay{"aten::_scaled_dot_product_efficient_attention_backward",
             efficient_attention_backward},
    KnownWay{"aten::_scaled_dot_product_flash_attention", flash_attention, true},
    KnownWay{"aten::_scaled_dot_product_flash_attention_backward", flash_attention_backward},
    KnownWay{"aten::_scaled_dot_product_cudnn_attention", cudnn_attention, true},
    KnownWay{"aten::_scaled_dot_product_cudnn_attention_backward", cudnn_attention_backward},
    KnownWay{"aten::_thnn_fused_lstm_cell", lstm_cell},
    KnownWay{"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward},
    KnownWay{"aten::_thnn_fused_gru_cell", gru_cell},
    KnownWay{"aten::_thnn_fused_gru_cell_backward", gru_cell_backward},
    KnownWay{"aten::_softmax", softmax, false, ShapesBy::kMeta},
    KnownWay{"aten::_log_softmax", log_softmax, false, ShapesBy::kMeta},
    KnownWay{"aten::_softmax_backward_data", softmax_backward, false, ShapesBy::kMeta},
    KnownWay{"aten::_log_softmax_backward_data", log_softmax_backward, false, ShapesBy::kMeta},
    KnownWay{"aten::linalg_lu_factor_ex", lu_factor, false, ShapesBy::kMeta},
    KnownWay{"aten::linalg_lu", lu, false, ShapesBy::kMeta},
    KnownWay{"aten::cudnn_grid_sampler", grid_sampler},
    KnownWay{"aten::cudnn_grid_sampler_backward", grid_sampler_backward},
    KnownWay{"aten::cudnn_is_acceptable", not_by_cudnn},
    KnownWay{"aten::_use_cudnn_ctc_loss", not_by_cudnn},
    KnownWay{"aten::_use_cudnn_ctc_loss.Tensor", not_by_cudnn},
    KnownWay{"aten::_use_miopen_ctc_loss", not_by_cudnn},
    KnownWay{"aten::_use_miopen_ctc_loss.Tensor", not_by_cudnn},
};

const KnownWay* known(const std::string& name) {
  for (const KnownWay& each : kWays) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace

Way find_way(const std::string& name) {
  const KnownWay* const found = known(name);
  return found != nullptr ? found->way : nullptr;
}

bool way_has_metas_shapes(const std::string& name) {
  const KnownWay* const found = known(name);
  return found != nullptr && found->shapes == ShapesBy::kMeta;
}

bool way_draws(const std::string& name) {
  const KnownWay* const found = known(name);
  return found != nullptr && found->draws;
}

}  // namespace ferry::vgpu
