#include "ferry/offload.h"

#include <torch/nn/module.h>

#include <exception>
#include <optional>
#include <utility>

#include "formats/error.h"
#include "formats/plan_file.h"
#include "real/api/offload_state.h"
#include "real/autograd/thread_end.h"
#include "real/tensors/torch_error.h"

namespace ferry {

using real::TorchAutograd;

namespace offload_impl {

class State final : public real::OffloadState {
 public:
  using OffloadState::OffloadState;
};

class Frame {
 public:
  explicit Frame(std::shared_ptr<State> state) : state_(std::move(state)) {
    state_->begin_run();
    if (state_->trace()) ops_.emplace(state_->trace());
    hooks_.emplace(TorchAutograd(), state_->hooks(),
                   state_->context(checkpoint_context(TorchAutograd().hooks())));
    spans_ = state_->spans(TorchAutograd().hooks());
    if (spans_) hooks_of_spans_.emplace(TorchAutograd(), spans_->hooks());
  }
  Frame() { none_.emplace(TorchAutograd()); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    if (!state_) return;
    const bool failed = std::uncaught_exceptions() > exceptions_ || (spans_ && !spans_->end());
    failed ? state_->abandon_run() : state_->end_run();
  }

 private:
  std::shared_ptr<State> state_;
  const int exceptions_ = std::uncaught_exceptions();
  std::optional<real::OpTraceScope> ops_;
  std::optional<HooksGuard<TorchAutograd>> hooks_;
  std::unique_ptr<real::PlannedSpans::Forward> spans_;
  std::optional<HooksGuard<TorchAutograd>> hooks_of_spans_;
  std::optional<NoHooksGuard<TorchAutograd>> none_;
};

}  // namespace offload_impl

Offload::Offload(OffloadOptions options) : state_(std::make_shared<offload_impl::State>(options)) {}

Offload::Offload(const Plan& plan, OffloadOptions options)
    : state_(std::make_shared<offload_impl::State>(plan, options)) {}

void Offload::exempt(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) exempt(parameter);
  for (const torch::Tensor& buffer : module.buffers()) exempt(buffer);
}

void Offload::exempt(const torch::Tensor& tensor) { state_->backends().exempt(tensor); }

OffloadStatistics Offload::statistics() const { return state_->backends().statistics(); }

OffloadStatistics Offload::step_statistics() const { return state_->step_statistics(); }

const CoreOptions& Offload::core_options() const { return state_->core(); }

bool Offload::empty() const { return state_->backends().empty(); }

OffloadLog Offload::take_log() { return state_->take_log(); }

void Offload::write_trace(const std::filesystem::path& path) const { state_->write_trace(path); }

OffloadGuard::OffloadGuard(const Offload& offload)
    : offload_(offload), frame_(std::make_unique<offload_impl::Frame>(offload_.state_)) {}
OffloadGuard::OffloadGuard(OffloadOptions options) : OffloadGuard(Offload(std::move(options))) {}
OffloadGuard::~OffloadGuard() { real::leave_at_thread_end(frame_); }

NoOffloadGuard::NoOffloadGuard() : frame_(std::make_unique<offload_impl::Frame>()) {}
NoOffloadGuard::~NoOffloadGuard() { real::leave_at_thread_end(frame_); }

Offload offload_by_plan(const std::filesystem::path& path, OffloadOptions options) {
  Plan plan;
  try {
    plan = read_plan(path);
  } catch (const InputError& error) {
    throw real::torch_error(ValueError(error.what()));
  }
  return Offload(std::move(plan), std::move(options));
}

}  // namespace ferry
