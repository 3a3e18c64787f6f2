// A training loop with its activations offloaded: one line more than without.
#include <ferry/offload.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(64, 256), torch::nn::GELU(),
                              torch::nn::Linear(256, 256), torch::nn::GELU(),
                              torch::nn::Linear(256, 1));
  torch::optim::AdamW optimizer(model->parameters(), 1e-3);
  ferry::Offload offload(ferry::OffloadOptions().window(1 << 20).prefetch(1 << 20));
  offload.exempt(*model);

  for (int step = 1; step <= 50; ++step) {
    const auto x = torch::randn({512, 64});
    const auto y = x.square().mean(1, /*keepdim=*/true);
    ferry::OffloadGuard guard(offload);  // the line
    const auto loss = torch::mse_loss(model->forward(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 10 == 0) std::cout << "step " << step << " loss " << loss.item<float>() << "\n";
  }
  const auto counts = offload.statistics();
  std::cout << "moved " << counts.offloaded_bytes / 1024 << " KiB to the host and "
            << counts.reloaded_bytes / 1024 << " KiB back\n";
  return offload.empty() ? 0 : 1;
}
