// Random models for LibTorch: a list of layers drawn by RapidCheck, run as a user would write it.
//
// The state is a matrix [kRows, kColumns]. Layers share three weights; some save their input, some
// their output, some several views of one storage; some write in place what autograd lets them.
// Everything random inside (dropout) comes from the default generator, seeded by the caller.
#pragma once

#include <rapidcheck.h>
#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace ferry {

enum class LayerKind : int {
  kLinear,
  kRelu,
  kGelu,
  kTanh,
  kSoftmax,
  kLayerNorm,
  kSquare,
  kGate,         // two halves of one storage
  kTranspose,    // a non-contiguous save
  kExpand,       // a broadcast save
  kSlice,        // a small window of a storage
  kInPlace,      // relu_ on a fresh tensor, whose output is saved
  kInPlaceLate,  // a write after a save that does not need the value
  kDropout,
  kSkip,     // is added again two layers later
  kBuffer,   // a product with what needs no gradient
  kExclude,  // a region that no hook sees, where the run says so
  kGather,
  kCount
};

struct Layer {
  LayerKind kind = LayerKind::kRelu;
  int weight = 0;
};

inline void showValue(const Layer& layer, std::ostream& os) {
  os << static_cast<int>(layer.kind) << ":" << layer.weight;
}

struct RandomModel {
  static constexpr std::int64_t kRows = 12;
  static constexpr std::int64_t kColumns = 32;

  std::vector<Layer> layers;
  std::vector<torch::Tensor> weights;
  torch::Tensor buffer;
  torch::Tensor index;

  explicit RandomModel(std::vector<Layer> drawn) : layers(std::move(drawn)) {
    at::set_num_threads(1);  // these tensors are small
    torch::manual_seed(7);
    const auto options = torch::dtype(torch::kFloat64);
    for (int i = 0; i < 3; ++i) {
      weights.push_back((torch::randn({kColumns, kColumns}, options) / 6).requires_grad_());
    }
    buffer = torch::randn({kRows, kColumns}, options);
    index = torch::randint(0, kRows, {kRows});
  }

  // `exclude()` gives a guard for the excluded regions.
  template <class Exclude>
  torch::Tensor forward(const torch::Tensor& x, Exclude exclude) const {
    return forward(x, 0, layers.size(), exclude);
  }
  // Layers [begin, end). A skip ends with them.
  template <class Exclude>
  torch::Tensor forward(torch::Tensor x, std::size_t begin, std::size_t end,
                        Exclude exclude) const {
    torch::Tensor skip;
    std::size_t skip_due = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (layers[i].kind == LayerKind::kSkip && !skip.defined()) {
        skip = x;
        skip_due = i + 2;
      } else if (layers[i].kind == LayerKind::kExclude) {
        [[maybe_unused]] const auto guard = exclude();
        x = (x * x).sin();
      } else {
        x = run(layers[i], x);
      }
      if (skip.defined() && i >= skip_due) x = x + std::exchange(skip, {});
    }
    return x;
  }
  torch::Tensor loss(const torch::Tensor& x) const { return (x * x).mean() + x.sin().sum(); }

 private:
  torch::Tensor run(const Layer& layer, const torch::Tensor& x) const {
    switch (layer.kind) {
      case LayerKind::kLinear:
        return x.matmul(weights[static_cast<std::size_t>(layer.weight)]);
      case LayerKind::kRelu:
        return x.relu();
      case LayerKind::kGelu:
        return torch::gelu(x);
      case LayerKind::kTanh:
        return x.tanh();
      case LayerKind::kSoftmax:
        return x.softmax(1);
      case LayerKind::kLayerNorm:
        return torch::layer_norm(x, {kColumns});
      case LayerKind::kSquare:
        return x * x;
      case LayerKind::kGate: {
        const auto both = x.matmul(weights[0]);
        const auto a = both.narrow(1, 0, kColumns / 2),
                   b = both.narrow(1, kColumns / 2, kColumns / 2);
        return torch::cat({a * b, b.sigmoid() * a}, 1);
      }
      case LayerKind::kTranspose:
        return (x.t() * x.t().tanh()).t();
      case LayerKind::kExpand:
        return (x.unsqueeze(0).expand({3, kRows, kColumns}) * x.exp().unsqueeze(0)).sum(0).tanh();
      case LayerKind::kSlice:
        return x + (x.narrow(0, 2, 1) * x.narrow(0, 5, 1));
      case LayerKind::kInPlace:
        return (x + 1).relu_();
      case LayerKind::kInPlaceLate: {
        const auto y = x * 2;  // saves nothing of y's
        const auto z = y + 1;
        const auto w = z.exp();  // saves w
        z.add_(1);               // nobody saved z
        return (w.tanh() + z).tanh();
      }
      case LayerKind::kDropout:
        return torch::dropout(x, 0.3, true);
      case LayerKind::kBuffer:
        return x * buffer;
      case LayerKind::kGather:
        return x.index_select(0, index) * x;
      case LayerKind::kSkip:
      case LayerKind::kExclude:
      case LayerKind::kCount:
        break;
    }
    return x.cos();
  }
};

inline rc::Gen<std::vector<Layer>> gen_layers() {
  const auto layer = rc::gen::map(
      rc::gen::pair(rc::gen::resize(100, rc::gen::inRange(0, static_cast<int>(LayerKind::kCount))),
                    rc::gen::resize(100, rc::gen::inRange(0, 3))),
      [](const std::pair<int, int>& drawn) {
        return Layer{static_cast<LayerKind>(drawn.first), drawn.second};
      });
  return rc::gen::resize(12, rc::gen::nonEmpty(rc::gen::container<std::vector<Layer>>(layer)));
}

}  // namespace ferry
