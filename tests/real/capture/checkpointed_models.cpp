#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferry/checkpoint.h"
#include "tests/real/capture/models.h"

namespace ferry::real::capture {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

using torch::Tensor;

// Square weights, as many as there are layers, and an input.
struct Layers : nn::Module {
  explicit Layers(int count) {
    for (int i = 0; i < count; ++i) {
      weights.push_back(
          register_parameter("weight" + std::to_string(i), torch::randn({32, 32}) * 0.2));
    }
  }
  std::vector<Tensor> weights;
  Tensor x = torch::randn({16, 32});
};

Step of(const std::shared_ptr<Layers>& layers, std::function<Tensor(Layers&)> loss) {
  return {
      layers, {{"x", layers->x}}, [layers, loss = std::move(loss)] { loss(*layers).backward(); }};
}

struct Mlp : nn::Module {
  Mlp() {
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({32})));
    up = register_module("up", nn::Linear(32, 128));
    down = register_module("down", nn::Linear(128, 32));
  }
  Tensor forward(const Tensor& x) {
    const auto dropout = F::DropoutFuncOptions().p(0.2);
    return x + F::dropout(down(F::gelu(up(norm(x)))), dropout);
  }
  nn::LayerNorm norm{nullptr};
  nn::Linear up{nullptr}, down{nullptr};
};

Step blocks_with_dropout() {
  nn::Sequential model;
  nn::Linear stem(32, 32);
  model->push_back(stem);
  std::vector<std::shared_ptr<Mlp>> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(std::make_shared<Mlp>());
    model->push_back(nn::ModuleHolder<Mlp>(blocks.back()));
  }
  const auto x = torch::randn({8, 32});
  return {model.ptr(), {{"x", x}}, [stem, blocks, x]() mutable {
            Tensor y = stem->forward(x);
            for (const auto& block : blocks) y = checkpoint(block, y);
            y.pow(2).mean().backward();
          }};
}

// Its statistics are of each batch once.
Tensor normalized(nn::BatchNorm2d& norm, const Tensor& x) {
  if (!is_recomputing()) return norm(x);
  return torch::batch_norm(x, norm->weight, norm->bias, norm->running_mean.clone(),
                           norm->running_var.clone(), true, 0.1, 1e-5, false);
}

struct Residual : nn::Module {
  Residual() {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).bias(false)));
    norm = register_module("norm", nn::BatchNorm2d(4));
  }
  Tensor forward(const Tensor& x) { return normalized(norm, conv(x)).add_(x).relu_(); }
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
};

Step residual_blocks() {
  nn::Sequential model;
  nn::Conv2d stem(nn::Conv2dOptions(3, 4, 3));
  model->push_back(stem);
  std::vector<std::shared_ptr<Residual>> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(std::make_shared<Residual>());
    model->push_back(nn::ModuleHolder<Residual>(blocks.back()));
  }
  const auto x = torch::randn({2, 3, 10, 10});
  return {model.ptr(), {{"x", x}}, [stem, blocks, x]() mutable {
            Tensor y = stem->forward(x).relu();
            for (const auto& block : blocks) y = checkpoint(block, y);
            y.mean({2, 3}).exp().sum().backward();
          }};
}

Step views_and_writes_inside() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      y = checkpoint(
          [&weight](const Tensor& in) {
            const Tensor a = in.mm(weight);
            Tensor b = a.narrow(1, 0, 16).sin() * a.narrow(1, 16, 16);
            b = torch::cat({b, b.exp().tanh()}, 1).view({32, 16}).sigmoid().view({16, 32});
            Tensor c = b.clone().add_(in).mul_(0.5);
            c.narrow(1, 0, 4).mul_(2);
            return c.relu_();
          },
          y);
    }
    return y.exp().sum();
  });
}

Step several_arguments_and_results() {
  return of(std::make_shared<Layers>(4), [](Layers& layers) {
    Tensor a = layers.x.mm(layers.weights[0]);
    Tensor b = a.tanh();
    for (const Tensor& weight : layers.weights) {
      std::tie(a, b) = checkpoint(
          [&weight](const Tensor& left, const Tensor& right) {
            const Tensor sum = (left * right).mm(weight).sin();
            return std::make_pair(sum, sum.cos() * right);
          },
          a, b);
    }
    return (a * b).sum();
  });
}

// The output of one is its neighbour's input, is saved outside, and inside more than once.
Step shared_storages() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    Tensor sum = y.sin();
    for (const Tensor& weight : layers.weights) {
      y = checkpoint([&weight](const Tensor& in) { return (in * in).mm(weight).exp() * in; }, y);
      y = y.clamp(-2, 2);
      sum = sum + y.exp() * y;
    }
    return (sum * y).sum();
  });
}

Step nested_checkpoints() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      y = checkpoint(
          [&weight](const Tensor& in) {
            const Tensor a = in.mm(weight).tanh();
            return checkpoint([&weight](const Tensor& b) { return b.mm(weight).sin().exp(); }, a)
                       .mm(weight)
                       .cos() *
                   a;
          },
          y);
    }
    return y.exp().sum();
  });
}

Step dropped_inside() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      y = checkpoint(
          [&weight](const Tensor& in) {
            in.sin().exp().cos();  // dropped at once
            const Tensor a = in.mm(weight).tanh();
            { const Tensor side = (a * in).exp().sin(); }
            return a.exp().sin();
          },
          y);
    }
    return y.exp().sum();
  });
}

Step segments_among_others() {
  return of(std::make_shared<Layers>(4), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    bool checkpointed = false;
    for (const Tensor& weight : layers.weights) {
      const auto block = [&weight](const Tensor& in) { return in.mm(weight).tanh().sin() * in; };
      checkpointed = !checkpointed;
      y = (checkpointed ? checkpoint(block, y) : block(y)).cos();
    }
    return y.exp().sum();
  });
}

Step retained_segments() {
  const auto layers = std::make_shared<Layers>(2);
  return {layers, {{"x", layers->x}}, [layers] {
            Tensor y = layers->x.mm(layers->weights[0]);
            for (const Tensor& weight : layers->weights) {
              y = checkpoint([&weight](const Tensor& in) { return in.mm(weight).tanh().exp(); }, y);
            }
            const Tensor loss = (y.sin() * y).sum();
            loss.backward({}, /*retain_graph=*/true);
            loss.backward();
          }};
}

Step excluded_inside() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      y = checkpoint(
          [&weight](const Tensor& in) {
            Tensor a = in.mm(weight).tanh();
            {
              const NoOffloadGuard alone;
              a = a.exp().sin();
            }
            return a.cos().exp();
          },
          y);
    }
    return y.exp().sum();
  });
}

// What a call is handed is neither all nor only what it reads, nor in the order of computing.
Step handed_by_the_step() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    const Tensor side = layers.x.sin();
    Tensor y = layers.x;
    for (const Tensor& weight : layers.weights) {
      const Tensor captured = y.cos().mm(weight);
      y = checkpoint(
          [&weight, captured](const Tensor& again, const Tensor& in, const Tensor&,
                              const Tensor& input) {
            return (in * again).mm(weight).sin() * captured + input.exp() * in;
          },
          y, y, side, layers.x);
    }
    return y.sin().sum();
  });
}

// A part of what an op made, seen otherwise inside, and written there.
Step handed_views() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      const Tensor wide = torch::cat({y, y.sin()}, 1);
      const Tensor part = wide.narrow(1, 16, 32);
      y = part.t().contiguous().t().exp().mul(wide.narrow(1, 0, 32)).clamp(-1, 1);
      y = checkpoint(
          [&weight](const Tensor& in, const Tensor& other) {
            const Tensor a = in.t().sin().t().mm(weight);
            return a.add_(in.narrow(0, 0, 8).repeat({2, 1})) * other.mul(in);
          },
          part, y);
    }
    return y.exp().sum();
  });
}

// A call without grad mode is no segment; nor does a plan count it.
Step without_grad_between() {
  return of(std::make_shared<Layers>(3), [](Layers& layers) {
    Tensor y = layers.x.mm(layers.weights[0]);
    for (const Tensor& weight : layers.weights) {
      const auto block = [&weight](const Tensor& in) { return in.mm(weight).tanh().exp(); };
      Tensor teacher;
      {
        const torch::NoGradGuard no_grad;
        teacher = checkpoint(block, y);
      }
      y = checkpoint(block, y).sin() * teacher;
    }
    return y.sum();
  });
}

Step one_call() {
  return of(std::make_shared<Layers>(1), [](Layers& layers) {
    const auto block = [&](const Tensor& in) { return in.mm(layers.weights[0]).tanh().exp(); };
    return checkpoint(block, layers.x).sin().sum();
  });
}

}  // namespace

const std::vector<NamedStep>& checkpointed_steps() {
  static const std::vector<NamedStep> steps = {
      {"blocks with dropout", blocks_with_dropout},
      {"residual blocks", residual_blocks},
      {"views and writes inside", views_and_writes_inside},
      {"several arguments and results", several_arguments_and_results},
      {"shared storages", shared_storages},
      {"nested checkpoints", nested_checkpoints},
      {"dropped inside", dropped_inside},
      {"segments among others", segments_among_others},
      {"retained segments", retained_segments},
      {"excluded inside", excluded_inside},
      {"handed by the step", handed_by_the_step},
      {"handed views", handed_views},
      {"without grad between", without_grad_between},
      {"one call", one_call}};
  return steps;
}

}  // namespace ferry::real::capture
