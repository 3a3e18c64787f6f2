// What is trained: a model and its data, behind one face.
//
// A batch is a function of the seed and the step's number; a loss, of the batch, the weights and
// LibTorch's generators (dropout). Of nothing else.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "real/train/batch.h"
#include "real/train/options.h"

namespace ferry::real::train {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual torch::nn::Module& module() = 0;
  // The step's, on the device.
  virtual Batch batch(std::int64_t step) = 0;
  // A scalar with its graph.
  virtual torch::Tensor loss(const Batch& batch) = 0;
  // Forward and backward of all micro-batches, in stages: the mean of their losses, without its
  // graph. Where the options ask for a pipeline.
  virtual bool is_pipelined() const { return false; }
  virtual torch::Tensor pipelined_step(const Batch& batch);

  // What progress is counted in: "tokens", and how many a step has.
  virtual const char* items() const = 0;
  virtual std::int64_t items_per_step() const = 0;

  // What decides which bits a training computes, by the options' names, and a state to resume from
  // must agree in. (LibTorch's threads are not in it, though it promises nothing across their
  // number.)
  using Identity = std::vector<std::pair<std::string, std::string>>;
  virtual Identity identity() const = 0;
};

// Reads or draws the data and makes the model, with weights from the seed, on the device. Seeds
// LibTorch's generators. Throws InputError where there is no text.
std::unique_ptr<Workload> make_workload(const Options& options);

c10::Device device(const Options& options);

}  // namespace ferry::real::train
