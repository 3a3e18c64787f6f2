// The tests of the tape share a builder that makes a layer or a call in a line, hooks that watch
// what is saved, and a run of a program with its checkers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/program_check.h"
#include "sim/program/tape.h"
#include "tests/sim/support/tiny.h"

namespace ferry::test {

using Names = std::vector<std::string>;
inline constexpr std::int64_t kBytes = 1024;  // of every tensor here but scalars

class Measured final : public sim::KernelTimes {
 public:
  sim::Time op_ns(const Op&, DType) const override { return 10; }
};

// A builder with one parameter, and names for what most programs here do.
struct Source : Builder {
  Source() { w = global(GlobalKind::kParameter, type()); }
  TypeId type() { return Builder::type({kBytes / 2}); }

  // A body that makes a gradient for each input, of all that it is given.
  CodeId body(std::size_t inputs, std::size_t saves) {
    const CodeId id = code(CodeKind::kBody, "Backward");
    std::vector<Slot> have = {argument(id)};
    for (std::size_t i = 0; i < saves; ++i) have.push_back(saved(id));
    for (std::size_t i = 0; i < inputs; ++i) result(id, op(id, "grad", have, type()));
    return id;
  }
  // y = name(x, w), which saves `keeps`; runs `backward`, or a body made for it.
  Slot layer(CodeId id, const std::string& name, std::vector<Slot> in, std::vector<Slot> keeps,
             CodeId backward = 0) {
    const Slot y = slot(id);
    if (backward == 0) backward = body(in.size(), keeps.size());
    add(id, MakeNode{name, node_id(), in, {y}, std::move(keeps), backward});
    add(id, Op{name, std::move(in), {y}, {type()}, {}, 0, 0, 0, 0});
    return y;
  }
  Slot call(CodeId segment, std::vector<Slot> in = {}, CodeId from = 0) {
    const Slot out = slot(from);
    add(from, Call{segment, std::move(in), {out}});
    return out;
  }
  void backward(Slot root, bool retain = false) { add(0, Backward{{root}, {}, {}, retain, false}); }

  Slot w = 0;
};

// Keeps the tensor, and tells what it saw.
class Watcher final : public Hooks<sim::Tensor> {
 public:
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    ++packs;
    class Kept final : public Saved<sim::Tensor> {
     public:
      Kept(Watcher& watcher, sim::Tensor tensor) : watcher_(watcher), tensor_(std::move(tensor)) {}
      sim::Tensor unpack() override { return watcher_.give ? watcher_.give(tensor_) : tensor_; }

     private:
      Watcher& watcher_;
      sim::Tensor tensor_;
    };
    return std::make_unique<Kept>(*this, std::make_shared<sim::TensorImpl>(*tensor));
  }
  int packs = 0;
  std::function<sim::Tensor(const sim::Tensor&)> give;  // another tensor than was packed
};

class Listener final : public StreamOpConsumer {
 public:
  explicit Listener(check::Values& values) : values_(values) {}
  void operator()(const StreamOp& op) override {
    values_(op);
    if (op.kind == StreamOpKind::kKernel && kernel) kernel(op);
  }
  std::function<void(const StreamOp&)> kernel;

 private:
  check::Values& values_;
};

// A run of a program, checked for sense first.
struct Trial {
  explicit Trial(const Program& program) : Trial(program, sim::MachineOptions{}) {}
  Trial(const Program& program, const sim::MachineOptions& options)
      : machine(options), listener(values) {
    check_program(program, "test");
    machine.add_consumer(&log);
    machine.add_consumer(&listener);
    tape = std::make_unique<sim::Tape>(program, machine, times, &values);
    born_ = machine.live_storages();
  }
  void run() {
    tape->run();
    tape->drop_frames();
  }
  // Beside the globals.
  std::int64_t alive() const { return machine.live_storages() - born_; }
  Names errors() const {
    Names messages;
    for (const sim::ProgramError& error : tape->errors()) messages.push_back(error.message);
    return messages;
  }
  std::uint64_t contents(const sim::Value& value) const {
    return values.read(sim::range_of(value.tensor));
  }

  OpLog log;
  check::Values values;
  sim::Machine machine;
  Listener listener;
  Measured times;
  std::unique_ptr<sim::Tape> tape;

 private:
  std::int64_t born_ = 0;
};

}  // namespace ferry::test
