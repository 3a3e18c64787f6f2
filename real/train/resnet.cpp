#include "real/train/resnet.h"

#include <ATen/Context.h>

#include <utility>

namespace ferry::real::train {

namespace nn = torch::nn;

namespace {

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t side, std::int64_t stride) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, side).stride(stride).padding(side / 2).bias(false));
  nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
  return layer;
}

// Updates the running statistics once per batch, even if the block is recomputed.
torch::Tensor normalized(nn::BatchNorm2d& norm, const torch::Tensor& x) {
  if (!ferry::is_recomputing()) return norm->forward(x);
  return torch::batch_norm(x, norm->weight, norm->bias, norm->running_mean.clone(),
                           norm->running_var.clone(), norm->is_training(),
                           *norm->options.momentum(), norm->options.eps(),
                           at::globalContext().userEnabledCuDNN());
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride) {
  conv1_ = register_module("conv1", conv(in, out, 3, stride));
  norm1_ = register_module("norm1", nn::BatchNorm2d(out));
  conv2_ = register_module("conv2", conv(out, out, 3, 1));
  norm2_ = register_module("norm2", nn::BatchNorm2d(out));
  if (in == out && stride == 1) return;
  shortcut_ = register_module("shortcut", conv(in, out, 1, stride));
  shortcut_norm_ = register_module("shortcut_norm", nn::BatchNorm2d(out));
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& x) {
  const torch::Tensor inner = normalized(norm1_, conv1_->forward(x)).relu_();
  const torch::Tensor side =
      shortcut_.is_empty() ? x : normalized(shortcut_norm_, shortcut_->forward(x));
  return normalized(norm2_, conv2_->forward(inner)).add_(side).relu_();
}

ResnetImpl::ResnetImpl(const ResnetOptions& options) : segments_(options.segments) {
  stem_ = register_module("stem", conv(3, options.width, 3, 1));
  stem_norm_ = register_module("stem_norm", nn::BatchNorm2d(options.width));
  blocks_ = register_module("blocks", nn::Sequential());
  std::int64_t channels = options.width;
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    const std::int64_t width = options.width << stage;
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      blocks_->push_back(BasicBlock(channels, width, stage > 0 && layer == 0 ? 2 : 1));
      channels = width;
    }
  }
  head_ = register_module("head", nn::Linear(channels, options.classes));
}

torch::Tensor ResnetImpl::forward(const torch::Tensor& images) {
  torch::Tensor x = stem_norm_->forward(stem_->forward(images)).relu_();
  for (std::size_t i = 0; i < blocks_->size(); ++i) {
    const auto block = blocks_->ptr<BasicBlockImpl>(i);
    x = run_block(segments_, i, block, std::move(x));
  }
  return head_->forward(x.mean({2, 3}));
}

}  // namespace ferry::real::train
