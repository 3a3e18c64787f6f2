#include "tests/real/capture/models.h"

#include <torch/torch.h>

namespace ferry::real::capture {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::indexing::Slice;

// A module without parts: parameters are registered by hand.
struct Parts : nn::Module {
  torch::Tensor add(const std::string& name, torch::Tensor value) {
    return register_parameter(name, std::move(value));
  }
};

Step mlp() {
  nn::Sequential model(nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 128), nn::GELU(),
                       nn::Linear(128, 10));
  const auto x = torch::randn({32, 64});
  const auto y = torch::randint(0, 10, {32});
  return {model.ptr(), {{"x", x}, {"y", y}}, [model, x, y]() mutable {
            F::cross_entropy(model->forward(x), y).backward();
          }};
}

struct Block : nn::Module {
  Block() {
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({32})));
    qkv = register_module("qkv", nn::Linear(32, 96));
    out = register_module("out", nn::Linear(32, 32));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({32})));
    up = register_module("up", nn::Linear(32, 128));
    down = register_module("down", nn::Linear(128, 32));
  }
  torch::Tensor attend(const torch::Tensor& x, bool fused) {
    const auto heads = qkv(norm1(x)).chunk(3, -1);
    const auto split = [&](const torch::Tensor& t) {
      return t.view({t.size(0), t.size(1), 4, 8}).transpose(1, 2);
    };
    const auto q = split(heads[0]), k = split(heads[1]), v = split(heads[2]);
    torch::Tensor y;
    if (fused) {
      y = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    } else {
      const auto weights = torch::softmax(q.matmul(k.transpose(-2, -1)) / 2.8, -1);
      y = F::dropout(weights, F::DropoutFuncOptions().p(0.1)).matmul(v);
    }
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }
  torch::Tensor forward(torch::Tensor x, bool fused) {
    x = x + attend(x, fused);
    return x + F::dropout(down(F::gelu(up(norm2(x)))), F::DropoutFuncOptions().p(0.2));
  }
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};

Step transformer() {
  const auto block = std::make_shared<Block>();
  const auto x = torch::randn({4, 16, 32});
  return {block, {{"x", x}}, [block, x] {
            const auto hidden = block->forward(x, /*fused=*/false);
            block->forward(hidden, /*fused=*/true).pow(2).mean().backward();
          }};
}

struct ConvNet : nn::Module {
  ConvNet() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)));
    norm1 = register_module("norm1", nn::BatchNorm2d(8));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1)));
    norm2 = register_module("norm2", nn::BatchNorm2d(8));
    head = register_module("head", nn::Linear(8, 5));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    auto y = norm1(conv1(x)).relu_();
    const auto skip = y;
    y = norm2(conv2(y)) + skip;
    y = torch::max_pool2d(y.relu_(), 2);
    y = F::dropout2d(y, F::Dropout2dFuncOptions().p(0.25));
    return head(y.mean({2, 3}));
  }
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  nn::Linear head{nullptr};
};

Step conv_net() {
  const auto net = std::make_shared<ConvNet>();
  const auto x = torch::randn({4, 3, 16, 16});
  const auto y = torch::randint(0, 5, {4});
  return {
      net, {{"x", x}, {"y", y}}, [net, x, y] { F::cross_entropy(net->forward(x), y).backward(); }};
}

Step shared_weights() {
  const auto parts = std::make_shared<Parts>();
  const auto table = parts->add("table", torch::randn({50, 32}));
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto tokens = torch::randint(0, 50, {8, 12});
  return {parts, {{"tokens", tokens}}, [table, weight, tokens] {
            auto x = torch::embedding(table, tokens);
            x = torch::tanh(x.matmul(weight));
            x = torch::tanh(x.matmul(weight));
            const auto scores = x.matmul(table.t());
            F::cross_entropy(scores.view({-1, 50}), tokens.view({-1})).backward();
          }};
}

Step views_and_writes() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({64, 64}));
  const auto x = torch::randn({16, 64});
  return {parts, {{"x", x}}, [weight, x] {
            auto a = x.matmul(weight);
            auto b = a.narrow(1, 0, 32).sin() * a.narrow(1, 32, 32);
            auto c = a.t().contiguous().view({32, 32}).exp();
            auto d = b.clone();
            d.index({Slice(), Slice(0, 8)}).mul_(2.0);
            d.add_(b);
            d.index({Slice(), Slice(4, 12)}).relu_();  // a view of what is saved later
            auto e = d.view({-1}).sigmoid().view({16, 32}) + 0;
            e.index({Slice(0, 4)}).zero_();
            (c.sum() + (e * d).sum() + d.select(1, 3).cos().sum()).backward();
          }};
}

Step saved_outputs() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            auto y = x.matmul(weight);
            y = torch::softmax(y, 1).sqrt() + torch::log_softmax(y, 1).exp();
            y = torch::sigmoid(y).tanh() * torch::rsqrt(y.abs() + 1);
            y.std().backward();
          }};
}

Step several_saves() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({48, 48}));
  const auto x = torch::randn({16, 48}).requires_grad_();
  return {parts, {{"x", x}}, [weight, x] {
            auto y = x.mm(weight);
            auto z = y * y + y * y.sin() + y.exp() * y;
            const auto pieces = z.chunk(3, 1);
            (pieces[0] * pieces[1] * pieces[2]).sum().backward();
          }};
}

Step retained_twice() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            auto y = torch::tanh(x.mm(weight)).mm(weight);
            const auto loss = (y.exp() * y).sum();
            loss.backward({}, /*retain_graph=*/true);
            loss.backward();
          }};
}

Step retained_and_dropped() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            auto y = torch::tanh(x.mm(weight)).view({32, 16}).sin().t().mm(weight.narrow(0, 0, 32));
            (y.exp() * y).sum().backward({}, /*retain_graph=*/true);
          }};
}

Step two_losses() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            const auto trunk = torch::tanh(x.mm(weight));
            trunk.mm(weight).sin().sum().backward({}, /*retain_graph=*/true);
            auto second = trunk.mm(weight.t()).cos();
            second = second * trunk;
            second.sum().backward();
          }};
}

Step excluded_region() {
  nn::Sequential model(nn::Linear(64, 64), nn::Tanh(), nn::Linear(64, 64));
  const auto x = torch::randn({16, 64});
  return {model.ptr(), {{"x", x}}, [model, x]() mutable {
            auto y = model->forward(x).sin();
            auto z = y * y;
            {
              const NoOffloadGuard alone;
              z = (y.exp() * z.cos()).tanh();
            }
            (z * y).sum().backward();
          }};
}

Step dead_branches() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            auto y = x.mm(weight);
            y.sin().exp().view({32, 16}).cos().sum();  // dropped at once
            const auto held = y.tanh().sin().mm(weight);
            auto z = y.sigmoid();
            {
              const auto dropped = (z * y).cos().view({-1}).tanh();
              z = z.mm(weight).sin();
            }
            z.sum().backward();
            TORCH_CHECK(held.defined());  // dropped at the end, without a backward
          }};
}

// Keeps one tensor where hooks see it, one where they do not.
struct Scaled : torch::autograd::Function<Scaled> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    context->save_for_backward({x, weight});
    const auto scale = x.abs() + 1;
    context->saved_data["scale"] = scale;
    return x.mm(weight) * scale;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = gradients[0] * context->saved_data["scale"].toTensor();
    return {gradient.mm(saved[1].t()), saved[0].t().mm(gradient)};
  }
};

Step custom_function() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, x] {
            const auto y = x.mm(weight).sin();
            Scaled::apply(y.exp(), weight).tanh().sum().backward();
          }};
}

// Small windows on a storage of more than a MiB move by themselves.
Step large_storages() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({64, 4096}));
  const auto x = torch::randn({128, 64});
  return {parts, {{"x", x}}, [weight, x] {
            const auto y = x.mm(weight);  // 2 MiB
            auto sum = y.narrow(0, 0, 16).sin() * y.narrow(0, 100, 16);
            sum = sum + y.narrow(0, 8, 16).exp();
            (sum.sum() + y.narrow(0, 0, 100).pow(3).mean()).backward();
          }};
}

Step leaves_and_constants() {
  const auto parts = std::make_shared<Parts>();
  const auto weight = parts->add("weight", torch::randn({32, 32}));
  parts->register_buffer("count", torch::zeros({32}));
  const auto count = parts->buffers().front();
  const auto mask = torch::rand({16, 32}) > 0.5;  // told to nobody
  const auto x = torch::randn({16, 32});
  return {parts, {{"x", x}}, [weight, count, mask, x] {
            {
              const torch::NoGradGuard no_grad;
              count.add_(x.sum(0));
            }
            const auto noise = torch::randn({16, 32}).requires_grad_();
            auto y = torch::where(mask, x.mm(weight), noise.sin()) * noise;
            y = y * torch::from_blob(new float[32](), {32},
                                     [](void* p) { delete[] static_cast<float*>(p); });
            y = y.masked_fill(mask, 0.5).clamp(-1, 1) + y.detach().cos();
            (y * count).sum().backward();
          }};
}

}  // namespace

const std::vector<NamedStep>& all_steps() {
  static const std::vector<NamedStep> steps = {{"mlp", mlp},
                                               {"transformer", transformer},
                                               {"conv net", conv_net},
                                               {"shared weights", shared_weights},
                                               {"views and writes", views_and_writes},
                                               {"saved outputs", saved_outputs},
                                               {"several saves", several_saves},
                                               {"retained twice", retained_twice},
                                               {"retained and dropped", retained_and_dropped},
                                               {"two losses", two_losses},
                                               {"excluded region", excluded_region},
                                               {"dead branches", dead_branches},
                                               {"custom function", custom_function},
                                               {"large storages", large_storages},
                                               {"leaves and constants", leaves_and_constants}};
  return steps;
}

}  // namespace ferry::real::capture
