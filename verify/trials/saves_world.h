// A simulated machine with every checker, and what a program does to tensors on it by hand: kernels
// that fill, write and read them, views, and storages that get other memory.
//
// The program is careful: a stream that it turns to waits for the one before, and the pool is told
// of each other stream that uses a block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/check/happens_before.h"
#include "sim/check/lifetime.h"
#include "sim/check/values.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

class SavesWorld final : public StreamOpConsumer {
 public:
  // The watch is told of each operation, and outlives it.
  explicit SavesWorld(StreamOpConsumer& watch);

  sim::Machine& machine() { return machine_; }
  void operator()(const StreamOp& op) override;

  // A tensor that fills a storage of its own, where `bytes` is not 0.
  sim::Tensor make(std::int64_t bytes);
  // The same on another device.
  sim::Tensor make_elsewhere(std::int64_t bytes);
  // On the same storage, with the same counter.
  sim::Tensor view(const sim::Tensor& base, std::int64_t begin, std::int64_t bytes);
  // With a counter of its own: x.data.
  sim::Tensor alias(const sim::Tensor& base);
  void write(const sim::Tensor& tensor);  // in place
  void read(const sim::Tensor& tensor);
  std::uint64_t contents(const sim::Tensor& tensor) const;
  // The storage has other memory from now on. The one that it had stays until all work so far is
  // done.
  void give_other_memory(sim::StorageImpl& storage);
  void turn_to_other_stream();

  // What went wrong so far.
  std::optional<Verdict> hazard() const;
  // What is left where nothing should be.
  std::optional<Verdict> leak() const;

 private:
  void fill(const sim::Tensor& tensor);
  void tell_pool(const sim::Tensor& tensor);

  // Before the machine, which tells them of what dies with it.
  check::Lifetime lifetime_;
  check::HappensBefore happens_before_{{.reuse_at_free = true}};
  check::Values values_;
  StreamOpConsumer& watch_;
  sim::Machine machine_;
  std::uint64_t kernels_ = 0;
};

}  // namespace ferry::verify
