// A simulated machine with all checkers, and functions that use its tensors as a program would:
// kernels that fill, write and read them, views, and storages that get other memory. try_saves.h
// plays the program with it.
//
// The simulated program is careful: when it changes the stream, the new stream waits for the old
// one, and every other stream that uses a block is reported to the pool (record_use).
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
  // `watch` gets each operation, and must outlive this object.
  explicit SavesWorld(StreamOpConsumer& watch);

  sim::Machine& machine() { return machine_; }
  void operator()(const StreamOp& op) override;

  // Makes a tensor on the whole of a new storage, and writes to the storage. If `bytes` is 0,
  // nothing is written.
  sim::Tensor make(std::int64_t bytes);
  // Makes one on another device.
  sim::Tensor make_elsewhere(std::int64_t bytes);
  // Makes a tensor on the same storage, with the same version counter.
  sim::Tensor view(const sim::Tensor& base, std::int64_t begin, std::int64_t bytes);
  // Makes one on the same storage with its own version counter, as x.data does.
  sim::Tensor alias(const sim::Tensor& base);
  void write(const sim::Tensor& tensor);  // in place
  void read(const sim::Tensor& tensor);
  std::uint64_t contents(const sim::Tensor& tensor) const;
  // Gives the storage other memory. The old memory stays until all work so far is done.
  void give_other_memory(sim::StorageImpl& storage);
  void turn_to_other_stream();

  // The first hazard so far, if any.
  std::optional<Verdict> hazard() const;
  // Returns a verdict if anything is left at the end.
  std::optional<Verdict> leak() const;

 private:
  void fill(const sim::Tensor& tensor);
  void tell_pool(const sim::Tensor& tensor);

  // These stand before the machine, whose destructor reports to them.
  check::Lifetime lifetime_;
  check::HappensBefore happens_before_{{.reuse_at_free = true}};
  check::Values values_;
  StreamOpConsumer& watch_;
  sim::Machine machine_;
  std::uint64_t kernels_ = 0;
};

}  // namespace ferry::verify
