// A workload: a model and its data, behind one interface.
//
// A batch depends on the seed and the step's number only; a loss on the batch, the weights and
// LibTorch's generators (dropout) only.
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
  // The step's batch, on the device.
  virtual Batch batch(std::int64_t step) = 0;
  // A scalar that has its graph.
  virtual torch::Tensor loss(const Batch& batch) = 0;
  // Runs forward and backward of all micro-batches, in stages; returns the mean of their losses,
  // without its graph. Only if the options ask for a pipeline.
  virtual bool is_pipelined() const { return false; }
  virtual torch::Tensor pipelined_step(const Batch& batch);
  // By device, what the stages of a plan that offload move with.
  virtual std::map<std::size_t, Offload> stage_offloads() const { return {}; }

  // The unit of progress, such as "tokens", and the number in a step.
  virtual const char* items() const = 0;
  virtual std::int64_t items_per_step() const = 0;

  // The options that decide which bits a training computes, by name; a resumed training must agree
  // in them. (LibTorch's threads are left out, though LibTorch promises nothing across their
  // number.)
  using Identity = std::vector<std::pair<std::string, std::string>>;
  virtual Identity identity() const = 0;
};

// Reads or draws the data and makes the model, with weights from the seed, on the device. Seeds
// LibTorch's generators. Throws InputError if there is no text.
std::unique_ptr<Workload> make_workload(const Options& options);

c10::Device device(const Options& options);

}  // namespace ferry::real::train
