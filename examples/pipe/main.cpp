// A training loop in two stages, a thread each, with a skip tensor past the layer between.
#include <ferry/pipe.h>
#include <ferry/skip.h>
#include <torch/torch.h>

#include <iostream>

struct InImpl : torch::nn::Module, ferry::SkipLayer {
  InImpl() : SkipLayer({"input"}, {}) { register_module("linear", linear); }
  torch::Tensor forward(const torch::Tensor& x) {
    stash("input", x);
    return torch::gelu(linear(x));
  }
  torch::nn::Linear linear{64, 256};
};
TORCH_MODULE(In);

struct OutImpl : torch::nn::Module, ferry::SkipLayer {
  OutImpl() : SkipLayer({}, {"input"}) { register_module("linear", linear); }
  torch::Tensor forward(const torch::Tensor& x) {
    return linear(torch::cat({x, pop("input").square()}, 1));
  }
  torch::nn::Linear linear{256 + 64, 1};
};
TORCH_MODULE(Out);

int main() {
  torch::manual_seed(0);
  torch::nn::Sequential layers(In(), torch::nn::Linear(256, 256), torch::nn::GELU(), Out());
  torch::optim::AdamW optimizer(layers->parameters(), 1e-3);
  ferry::Pipe pipe(layers, ferry::PipeOptions().balance({1, 3}).microbatches(4));

  torch::Tensor loss;
  for (int step = 1; step <= 50; ++step) {
    const auto x = torch::randn({512, 64});
    const auto y = x.square().mean(1, /*keepdim=*/true);
    optimizer.zero_grad();
    loss = pipe.step(
        x, y, [](const auto& out, const auto& target) { return torch::mse_loss(out, target); });
    optimizer.step();
    if (step % 10 == 0) std::cout << "step " << step << " loss " << loss.item<float>() << "\n";
  }
  return loss.item<float>() < 0.2F ? 0 : 1;
}
