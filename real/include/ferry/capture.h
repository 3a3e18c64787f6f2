// Records one step of a LibTorch program as a ferry::Program, which `ferry plan`, `ferry simulate`
// and `ferry replay` read (formats/PROGRAM.md).
//
//   ferry::Program program = ferry::capture(*model, {{"x", x}, {"y", y}}, [&] {
//     torch::nn::functional::cross_entropy(model->forward(x), y).backward();
//   });
//   ferry::write_program("step.jsonl", program);
//
// The step runs once, and computes what it would: its gradients accumulate. What is written: each
// op below autograd with the types of what it makes, what it writes in place, its cost and the time
// it took here; views; the nodes of the graph with their edges and saved tensors; what each node
// runs in backward; where each storage dies. Run without Offload or other hooks around it.
//
// Two captures of the same step are the same bytes but for the times. A captured step makes the
// same decisions on the simulated device as it does on the real one: packs are counted alike, and
// storages live as long.
//
// A step is one forward and one backward, or several of either after the first backward. Tensors
// that the step uses and that are neither the module's nor inputs, become inputs by the name of
// constant.N; to the offloader they are what they are to Offload: not exempt.
//
// Calls of ferry::checkpoint just run while they are captured, and are written as modules
// checkpoint.0, checkpoint.1 and so on, with the tensors they were handed: the segments that plans
// recompute or not. What else a call reads is its function's own, captured. Not seen is what a
// function holds and does not read, or is handed as well: on the simulated device that dies when
// the step drops it. And where parts of a graph with checkpoints die outside a backward, their
// saved tensors may die in another order than they do in LibTorch.
//
// Refused, with ferry::CaptureError: create_graph; a backward for given inputs
// (torch::autograd::grad); a backward inside a backward or inside a checkpoint; a reentrant
// checkpoint; a checkpoint inside a NoOffloadGuard; a node that saves tensors in backward; ops
// after a backward that use gradients (an optimiser); sparse, nested, quantised and lazily
// conjugated tensors; tensors that share a storage and not a version (Tensor::variable_data) where
// both are saved. Not seen: hooks on tensors; streams (all work is written as of one stream).
//
// A time is that of an op's kernels, without the host's work above them. On the CPU it is the
// host's clock around them; on an accelerator it lies between two events on the stream, and the
// step runs slower than usual: ops wait until the host has issued them.
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "shared/seam/error.h"

namespace torch::nn {
class Module;
}

namespace ferry {

class CaptureError : public Error {
 public:
  using Error::Error;
};

using CaptureAbout = std::vector<std::pair<std::string, std::string>>;
using CaptureInputs = std::vector<std::pair<std::string, torch::Tensor>>;

struct CaptureOptions {
  CaptureOptions() = default;

  TORCH_ARG(std::string, name) = "program";
  // Notes for people: model, batch.
  TORCH_ARG(CaptureAbout, about);
  // Write the measured time of each op. Without times, two captures are the same bytes.
  TORCH_ARG(bool, times) = true;
};

// The step runs forward and backward itself. One capture at a time in a process; throws
// CaptureError, and what the step throws.
Program capture(const torch::nn::Module& module, const CaptureInputs& inputs,
                const std::function<void()>& step, const CaptureOptions& options = {});

// One training step: the loss, then its backward.
Program capture_loss(const torch::nn::Module& module, const CaptureInputs& inputs,
                     const std::function<torch::Tensor()>& loss,
                     const CaptureOptions& options = {});

}  // namespace ferry
