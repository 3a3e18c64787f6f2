// A workload: a model and its data, with one interface.
//
// A batch depends only on the seed and the number of the step. A loss depends only on the batch,
// the weights and LibTorch's generators (dropout).
#pragma once

#include <torch/nn.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "real/train/batch.h"
#include "real/train/options.h"

namespace ferry::real::train {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual torch::nn::Module& module() = 0;
  // Returns the batch of the step, on the device.
  virtual Batch batch(std::int64_t step) = 0;
  // Returns the loss, a scalar with its graph.
  virtual torch::Tensor loss(const Batch& batch) = 0;
  // Runs forward and backward of all micro-batches in stages, and returns the mean of their losses,
  // without graph. Call it only if is_pipelined().
  virtual bool is_pipelined() const { return false; }
  virtual torch::Tensor pipelined_step(const Batch& batch);
  // Returns, by device, the Offload of the stages that offload by a plan.
  virtual std::map<std::size_t, Offload> stage_offloads() const { return {}; }

  // The unit of progress, such as "tokens", and how many a step has.
  virtual const char* items() const = 0;
  virtual std::int64_t items_per_step() const = 0;

  // The options that determine the bits of a training, by name. A resumed training must have the
  // same ones. The number of LibTorch's threads is left out, although LibTorch does not promise
  // equal bits for different numbers.
  using Identity = std::vector<std::pair<std::string, std::string>>;
  virtual Identity identity() const = 0;
};

// Reads or generates the data and makes the model on the device, with weights from the seed. It
// seeds LibTorch's generators. Throws InputError if there is no text.
std::unique_ptr<Workload> make_workload(const Options& options);

c10::Device device(const Options& options);

}  // namespace ferry::real::train
