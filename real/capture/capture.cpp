#include "ferry/capture.h"

#include <torch/nn/module.h>

#include "formats/error.h"
#include "formats/program_check.h"
#include "real/capture/lower.h"
#include "real/capture/recorder.h"
#include "real/capture/recorder_scope.h"
#include "real/tensors/torch_error.h"

namespace ferry {
namespace {

using real::capture::GivenTensor;

std::vector<GivenTensor> given(const torch::nn::Module& module, const CaptureInputs& inputs) {
  std::vector<GivenTensor> tensors;
  const auto add = [&](GlobalKind kind, const std::string& name, const torch::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back({kind, name, tensor});
  };
  for (const auto& parameter : module.named_parameters()) {
    add(GlobalKind::kParameter, parameter.key(), parameter.value());
  }
  for (const auto& buffer : module.named_buffers()) {
    add(GlobalKind::kBuffer, buffer.key(), buffer.value());
  }
  for (const auto& [name, tensor] : inputs) add(GlobalKind::kInput, name, tensor);
  return tensors;
}

}  // namespace

Program capture(const torch::nn::Module& module, const CaptureInputs& inputs,
                const std::function<void()>& step, const CaptureOptions& options) {
  const std::vector<GivenTensor> tensors = given(module, inputs);
  const auto recorder = std::make_shared<real::capture::Recorder>(tensors, options.times());
  real::capture::Trace trace;
  {
    const real::capture::Recorder::Scope scope(recorder);
    step();
    trace = recorder->finish();
  }
  Program program = real::capture::lower(trace, options);
  try {
    check_program(program, options.name());
  } catch (const InputError& error) {
    throw real::torch_error(
        CaptureError(std::string("the captured program contradicts itself: ") + error.what()));
  }
  return program;
}

Program capture_loss(const torch::nn::Module& module, const CaptureInputs& inputs,
                     const std::function<torch::Tensor()>& loss, const CaptureOptions& options) {
  return capture(
      module, inputs, [&loss] { loss().backward(); }, options);
}

}  // namespace ferry
