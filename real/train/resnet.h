// A ResNet in LibTorch for small pictures, after He et al. ("Deep Residual Learning", 2015), in its
// form for CIFAR.
//
// It has a 3x3 stem and three stages of basic blocks. Each later stage halves the side and doubles
// the channels. There is batch norm everywhere, so the module has buffers (running statistics).
// ReLU works in place. If a block changes the shape, its shortcut is a 1x1 convolution. The pooling
// at the end is a mean, whose backward is deterministic on every device.
#pragma once

#include <torch/nn.h>

#include <cstdint>

#include "real/train/segment.h"

namespace ferry::real::train {

struct ResnetOptions {
  std::int64_t layers = 2;  // basic blocks per stage; 6 layers + 2 weighted layers in all
  std::int64_t width = 16;  // channels of the first stage
  std::int64_t classes = 10;
  Segments segments = Segments::kPlain;  // which blocks are checkpoints
};

class BasicBlockImpl : public torch::nn::Module {
 public:
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d norm1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::BatchNorm2d norm2_{nullptr};
  torch::nn::Conv2d shortcut_{nullptr};  // empty: the input is added unchanged
  torch::nn::BatchNorm2d shortcut_norm_{nullptr};
};
TORCH_MODULE(BasicBlock);

class ResnetImpl : public torch::nn::Module {
 public:
  // Initialises the weights with LibTorch's generator.
  explicit ResnetImpl(const ResnetOptions& options);

  // Takes float32 [batch, 3, side, side], returns [batch, classes].
  torch::Tensor forward(const torch::Tensor& images);

 private:
  Segments segments_;
  torch::nn::Conv2d stem_{nullptr};
  torch::nn::BatchNorm2d stem_norm_{nullptr};
  torch::nn::Sequential blocks_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Resnet);

}  // namespace ferry::real::train
