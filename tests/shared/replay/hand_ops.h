// Operators by hand make and write contents that depend on all that they read, so that what runs
// again shows whether it was given the same. Contents are numbers, a few to each storage.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "sim/choices/hash.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "tests/shared/replay/span_results.h"

namespace ferry::test {

struct HandOp {
  enum class Makes : std::uint8_t { kNew, kView, kAgain, kNothing };
  struct Output {
    Makes makes = Makes::kNew;
    std::size_t of = 0;  // an argument's view; or the output that it is on again
    bool odd = false;    // it is more than a window
  };
  std::uint64_t number = 0;
  std::vector<bool> written;  // by argument
  bool overwrites = false;
  bool blank = false;
  std::vector<Output> outputs;
  std::int64_t again_bytes = 0;  // of what it makes when it runs again; -1: it has no outputs then
};

class HandOps {
 public:
  using Tensor = sim::Tensor;
  static constexpr std::int64_t kCells = 4;
  static constexpr std::int64_t kCellBytes = SpanResults::kBytes / kCells;
  using Cells = std::array<std::uint64_t, kCells>;

  explicit HandOps(sim::Machine& machine) : machine_(machine) {
    for (std::int64_t begin = 0; begin < kCells; ++begin) {
      for (std::int64_t cells = 1; begin + cells <= kCells; ++cells) {
        Layout layout = contiguous_layout(DType::kU8, {cells * kCellBytes});
        layout.offset = begin * kCellBytes;
        windows_[{begin, cells}] = std::make_shared<const sim::Window>(
            sim::Window{layout, {begin * kCellBytes, (begin + cells) * kCellBytes}});
      }
    }
    odd_ = std::make_shared<const sim::Window>(*windows_.at({0, kCells}));
    // It has the first byte and the last one.
    sparse_ = std::make_shared<const sim::Window>(
        sim::Window{{DType::kU8, {2}, {SpanResults::kBytes - 1}, 0}, {0, SpanResults::kBytes}});
  }

  // Returns a window of the storage's cells, from `begin` on.
  Tensor view(const Tensor& of, std::int64_t begin, std::int64_t cells) const {
    return sim::make_tensor(of->storage, {windows_.at({begin, cells}), 0}, of->version);
  }
  Tensor sparse(const Tensor& of) const {
    return sim::make_tensor(of->storage, {sparse_, 0}, of->version);
  }
  // Returns the whole of it, as more than a window.
  Tensor odd(const Tensor& of) const {
    return sim::make_tensor(of->storage, {odd_, 0}, of->version);
  }
  bool is_plain(const Tensor& tensor) const { return tensor->layout.window != odd_; }
  bool is_whole(const Tensor& tensor) const {
    return tensor->storage && tensor->layout.window != sparse_ &&
           cells_of(tensor) == std::pair<std::int64_t, std::int64_t>{0, kCells};
  }

  // `again`: it runs again.
  std::vector<Tensor> run(const HandOp& op, const std::vector<Tensor>& arguments, bool again) {
    std::uint64_t hash = op.number;
    std::vector<Range> reads;
    std::vector<Range> writes;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i]->storage) continue;
      (op.written[i] ? writes : reads).push_back(sim::range_of(arguments[i]));
      if (op.written[i] && op.overwrites) continue;
      for (const std::uint64_t cell : contents(arguments[i])) hash = choices::mix_bits(hash ^ cell);
    }
    const std::vector<Tensor> made = make(op, arguments, hash, again, writes);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (op.written[i]) write(arguments[i], hash);
    }
    machine_.kernel("op", op.number, reads, writes, 1);
    return made;
  }

  // Returns the cells that the tensor is on.
  std::vector<std::uint64_t> contents(const Tensor& tensor) const {
    if (!tensor->storage) return {};
    const Cells& cells = cells_.at(tensor->storage->identity);
    if (tensor->layout.window == sparse_) return {cells.front(), cells.back()};
    const auto [begin, count] = cells_of(tensor);
    return {cells.begin() + begin, cells.begin() + begin + count};
  }
  void set(const Tensor& tensor, const Cells& cells) { cells_[tensor->storage->identity] = cells; }
  const Cells& all(const Tensor& tensor) const { return cells_.at(tensor->storage->identity); }

  Tensor make_new(std::int64_t bytes, bool odd = false) {
    Tensor tensor =
        sim::make_tensor(machine_.allocate(bytes, machine_.current_stream()),
                         {odd ? odd_ : windows_.at({0, kCells}), 0}, machine_.new_version());
    // New bytes hold whatever was there before.
    for (std::uint64_t& cell : cells_[tensor->storage->identity]) {
      cell = choices::mix_bits(++garbage_);
    }
    return tensor;
  }

 private:
  static std::pair<std::int64_t, std::int64_t> cells_of(const Tensor& tensor) {
    const Extent extent = tensor->layout.extent();
    return {extent.begin / kCellBytes, extent.bytes() / kCellBytes};
  }

  std::vector<Tensor> make(const HandOp& op, const std::vector<Tensor>& arguments,
                           std::uint64_t hash, bool again, std::vector<Range>& writes) {
    std::vector<Tensor> made;
    if (again && op.again_bytes < 0) return made;
    const bool other = again && op.again_bytes > 0;
    for (const HandOp::Output& output : op.outputs) {
      if (output.makes == HandOp::Makes::kView) {
        made.push_back(view(arguments[output.of], 0, 1));
      } else if (output.makes == HandOp::Makes::kAgain) {
        made.push_back(view(made[output.of], 1, 2));
      } else {
        made.push_back(make_new(other ? op.again_bytes : SpanResults::kBytes, output.odd));
        if (output.makes == HandOp::Makes::kNothing) made.back()->storage = nullptr;
        if (output.makes == HandOp::Makes::kNothing || op.blank) continue;
        write(made.back(), hash + made.size());
        writes.push_back(sim::range_of(made.back()));
      }
    }
    return made;
  }
  void write(const Tensor& tensor, std::uint64_t hash) {
    if (!tensor->storage) return;
    Cells& cells = cells_.at(tensor->storage->identity);
    if (tensor->layout.window == sparse_) {
      cells.front() = choices::mix_bits(hash);
      cells.back() = choices::mix_bits(hash + 1);
      return;
    }
    const auto [begin, count] = cells_of(tensor);
    for (std::int64_t i = 0; i < count; ++i) {
      cells[static_cast<std::size_t>(begin + i)] =
          choices::mix_bits(hash + 64 + static_cast<std::uint64_t>(i));
    }
  }

  sim::Machine& machine_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const sim::Window>> windows_;
  std::shared_ptr<const sim::Window> odd_;
  std::shared_ptr<const sim::Window> sparse_;
  std::map<std::uint64_t, Cells> cells_;  // by storage
  std::uint64_t garbage_ = 0;
};

}  // namespace ferry::test
