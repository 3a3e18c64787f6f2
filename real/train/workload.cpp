#include "real/train/workload.h"

#include <fmt/core.h>
#include <torch/nn/functional/loss.h>
#include <torch/utils.h>

#include <optional>
#include <stdexcept>
#include <string_view>

#include "ferry/pipe.h"
#include "formats/error.h"
#include "real/train/digest.h"
#include "real/train/gpt_pipe.h"
#include "real/train/images.h"
#include "real/train/text.h"

namespace ferry::real::train {

namespace F = torch::nn::functional;

namespace {

void add_common(Workload::Identity& identity, const Options& options) {
  identity.emplace_back("--batch", fmt::format("{}", options.batch));
  identity.emplace_back("--seed", fmt::format("{}", options.seed));
  identity.emplace_back("--lr", fmt::format("{}", options.learning_rate));
  identity.emplace_back("--device", options.cuda ? "cuda" : "cpu");
  // Micro-batches, also in a pipeline, add up gradients in another order, so their number counts.
  // Its key is the name that the option had when the first states were written.
  if (options.microbatches > 1) {
    identity.emplace_back("--chunks", fmt::format("{}", options.microbatches));
  }
}

Batch on_device(const Batch& batch, const Options& options) {
  return {batch.input.to(device(options)), batch.target.to(device(options))};
}

// A language model over bytes.
class TextWorkload : public Workload {
 public:
  TextWorkload(const Options& options, Text text, std::int64_t context)
      : options_(options), text_(std::move(text)), context_(context) {}
  Batch batch(std::int64_t step) override {
    return on_device(text_batch(text_, options_.batch, context_,
                                static_cast<std::uint64_t>(options_.seed), step),
                     options_);
  }
  const char* items() const override { return "tokens"; }
  std::int64_t items_per_step() const override { return options_.batch * context_; }

 protected:
  // It is computed in float32, whatever the dtype of the model.
  static torch::Tensor loss_of(const torch::Tensor& logits, const torch::Tensor& target) {
    return F::cross_entropy(logits.flatten(0, 1).to(torch::kFloat), target.flatten());
  }
  void move(torch::nn::Module& model) const { model.to(device(options_), options_.dtype); }
  // Adds the options that are not the model's shape. An option is left out if it has the value that
  // was fixed before the option existed, so that old states still match.
  void add_text(Identity& identity, std::int64_t vocabulary) const {
    identity.emplace_back("--context", fmt::format("{}", context_));
    if (vocabulary != 256) identity.emplace_back("--vocabulary", fmt::format("{}", vocabulary));
    if (options_.dtype != torch::kFloat) identity.emplace_back("--dtype", "bf16");
    identity.emplace_back("--data", digest(text_.bytes));
    add_common(identity, options_);
  }
  const Options& options() const { return options_; }

 private:
  Options options_;
  Text text_;
  std::int64_t context_;
};

class GptWorkload final : public TextWorkload {
 public:
  GptWorkload(const Options& options, Text text)
      : TextWorkload(options, std::move(text), options.gpt.context), model_(options.gpt) {
    move(*model_);
    if (options.stages > 0) pipe_.emplace(make_pipe(options, model_));
  }
  torch::nn::Module& module() override { return *model_; }
  torch::Tensor loss(const Batch& batch) override {
    return loss_of(model_->forward(batch.input), batch.target);
  }
  bool is_pipelined() const override { return pipe_.has_value(); }
  torch::Tensor pipelined_step(const Batch& batch) override {
    return pipe_.value().step(batch.input, batch.target, loss_of);
  }
  std::map<std::size_t, Offload> stage_offloads() const override {
    return pipe_ ? pipe_->offloads() : std::map<std::size_t, Offload>();
  }
  Identity identity() const override {
    const GptOptions& gpt = options().gpt;
    Identity identity = {{"model", "gpt"},
                         {"--layers", fmt::format("{}", gpt.layers)},
                         {"--width", fmt::format("{}", gpt.width)},
                         {"--heads", fmt::format("{}", gpt.heads)},
                         {"--dropout", fmt::format("{}", gpt.dropout)}};
    add_text(identity, gpt.vocabulary);
    return identity;
  }

 private:
  Gpt model_;
  std::optional<Pipe> pipe_;
};

class LlamaWorkload final : public TextWorkload {
 public:
  LlamaWorkload(const Options& options, Text text)
      : TextWorkload(options, std::move(text), options.llama.context), model_(options.llama) {
    move(*model_);
  }
  torch::nn::Module& module() override { return *model_; }
  torch::Tensor loss(const Batch& batch) override {
    return loss_of(model_->forward(batch.input), batch.target);
  }
  Identity identity() const override {
    const LlamaOptions& llama = options().llama;
    Identity identity = {{"model", "llama"},
                         {"--layers", fmt::format("{}", llama.layers)},
                         {"--width", fmt::format("{}", llama.width)},
                         {"--heads", fmt::format("{}", llama.heads)},
                         {"--kv-heads", fmt::format("{}", llama.kv_heads)},
                         {"--hidden", fmt::format("{}", llama.hidden)},
                         {"--untied", llama.untied ? "yes" : "no"}};
    add_text(identity, llama.vocabulary);
    return identity;
  }

 private:
  Llama model_;
};

class ResnetWorkload final : public Workload {
 public:
  explicit ResnetWorkload(const Options& options)
      : options_(options),
        images_(draw_images(options.images, static_cast<std::uint64_t>(options.seed))),
        model_(options.resnet) {
    model_->to(device(options));
  }
  torch::nn::Module& module() override { return *model_; }
  Batch batch(std::int64_t step) override {
    return on_device(
        image_batch(images_, options_.batch, static_cast<std::uint64_t>(options_.seed), step),
        options_);
  }
  torch::Tensor loss(const Batch& batch) override {
    return F::cross_entropy(model_->forward(batch.input), batch.target);
  }
  const char* items() const override { return "images"; }
  std::int64_t items_per_step() const override { return options_.batch; }
  Identity identity() const override {
    Identity identity = {{"model", "resnet"},
                         {"--layers", fmt::format("{}", options_.resnet.layers)},
                         {"--width", fmt::format("{}", options_.resnet.width)},
                         {"--images", fmt::format("{}", options_.images)}};
    add_common(identity, options_);
    return identity;
  }

 private:
  Options options_;
  Images images_;
  Resnet model_;
};

Text find_text(const Options& options, std::int64_t context) {
  const std::filesystem::path folder = options.data.empty() ? default_text_folder() : options.data;
  if (folder.empty()) {
    throw InputError("--data", 0,
                     "expected a folder of text: the one that comes with Ferry is not there");
  }
  return read_text(folder, context + 1);
}

}  // namespace

torch::Tensor Workload::pipelined_step(const Batch&) {
  throw std::logic_error("this training has no stages");
}

std::unique_ptr<Workload> make_workload(const Options& options) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  switch (options.model) {
    case Model::kGpt:
      return std::make_unique<GptWorkload>(options, find_text(options, options.gpt.context));
    case Model::kLlama:
      return std::make_unique<LlamaWorkload>(options, find_text(options, options.llama.context));
    case Model::kResnet:
      return std::make_unique<ResnetWorkload>(options);
  }
  throw std::logic_error("no such model");
}

c10::Device device(const Options& options) {
  return options.cuda ? c10::Device(c10::DeviceType::CUDA, 0) : c10::Device(c10::DeviceType::CPU);
}

}  // namespace ferry::real::train
