// Records one training step of a LibTorch program as a ferry::Program, which `ferry plan`, `ferry
// simulate` and `ferry replay` read (formats/PROGRAM.md).
//
//   ferry::Program program = ferry::capture(*model, {{"x", x}, {"y", y}}, [&] {
//     torch::nn::functional::cross_entropy(model->forward(x), y).backward();
//   });
//   ferry::write_program("step.jsonl", program);
//
// The step runs once and computes its usual results: gradients accumulate. The program lists each
// op below autograd, with the types of its results, its in-place writes, its cost and its measured
// time; the views; the nodes of the graph with their edges, saved tensors and backward ops; and the
// point where each storage dies. Do not put an Offload or other hooks around a capture.
//
// Two captures of the same step have the same bytes, except for the times. The core makes the same
// decisions for a captured step on the simulated device as for the real step: packs are counted in
// the same way, and storages live equally long.
//
// A step is one forward and one backward. After the first backward there may be more of either. A
// tensor that the step uses, and that is neither in the module nor in `inputs`, becomes an input
// named constant.N. As with Offload, such tensors are not exempt from offloading.
//
// Calls of ferry::checkpoint run without recomputing during a capture. They are written as modules
// checkpoint.0, checkpoint.1 and so on, with their tensor arguments; a plan decides for each of
// these segments whether it is recomputed. A tensor that the function reads and is not an argument
// counts as captured by the function. If the function holds a tensor without reading it, the
// capture does not see that, even if the tensor is an argument too. On the simulated device the
// tensor dies when the step drops it. If parts of a graph with checkpoints die outside a backward,
// their saved tensors may die in another order than in LibTorch.
//
// These throw ferry::CaptureError: create_graph; a backward for given inputs
// (torch::autograd::grad); a backward inside a backward or inside a checkpoint; a reentrant
// checkpoint; a checkpoint inside a NoOffloadGuard; a node that saves tensors in backward; ops
// after a backward that use gradients (an optimizer); sparse, nested, quantised and lazily
// conjugated tensors; tensors that share a storage but not a version counter
// (Tensor::variable_data), if both are saved. Hooks on tensors and streams are not recorded: all
// work is written as if it ran on one stream.
//
// A time is that of the kernels of an op, without the host's work above them. On the CPU it is
// measured with the host's clock. On an accelerator it is the time between two events on the
// stream; the step then runs slower than usual, because each op waits until the host has issued it.
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
  // Notes for readers, such as the model and the batch.
  TORCH_ARG(CaptureAbout, about);
  // Write the measured time of each op. Without times, two captures have the same bytes.
  TORCH_ARG(bool, times) = true;
};

// `step` runs forward and backward itself. Only one capture may run in a process at a time. Throws
// CaptureError, and what the step throws.
Program capture(const torch::nn::Module& module, const CaptureInputs& inputs,
                const std::function<void()>& step, const CaptureOptions& options = {});

// Captures one training step: computes the loss, then runs its backward.
Program capture_loss(const torch::nn::Module& module, const CaptureInputs& inputs,
                     const std::function<torch::Tensor()>& loss,
                     const CaptureOptions& options = {});

}  // namespace ferry
