// Runs a kernel: the programs of a launch, a chunk of them at a time.
//
// All programs of a chunk execute an operation together, on values that have the elements of all of
// them (value.h). Where programs take different branches, both are executed, and a mask says which
// programs are active: the others' memory is not touched, and their values stay. A chunk is as many
// programs as keep a tensor in the processor's cache.
//
// The machine can also run the *slice* of a kernel alone: the operations that addresses, masks and
// control need (slices.h). Then loads and stores only report what they would touch.
//
// Kernels that use an atomic's result may wait for another program, so their programs run one after
// the other, in the order of their numbers. Not modelled: how the threads of a program share its
// work. A Machine is used by one thread, and calls nobody's code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vgpu/triton/launch.h"
#include "vgpu/triton/memory.h"
#include "vgpu/triton/ttir.h"
#include "vgpu/triton/value.h"

namespace ferry::vgpu::triton {

class Machine {
 public:
  enum class Runs : std::uint8_t { kAll, kSlice };

  Machine(const Kernel& kernel, const Launch& launch, Runs runs);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Runs every program of the launch. Throws std::runtime_error with a line of the program's source
  // for an access outside of the launch's memory, and for an assertion that fails.
  void run();

  Memory& memory() { return memory_; }
  std::int64_t flops() const { return flops_; }  // of tt.dot

  // For operations (operations.h).
  Pool& pool() { return pool_; }
  bool is_slice() const { return runs_ == Runs::kSlice; }
  bool is_sequential() const { return kernel_.is_sequential; }
  const Value& at(ValueId id) const { return values_[id]; }
  const Value& operand(const Op& op, std::size_t i) const { return values_[op.operands.at(i)]; }
  void set(ValueId id, Value value) { values_[id] = std::move(value); }
  void set_result(const Op& op, Value value) { values_[op.results.at(0)] = std::move(value); }
  const Type& type(ValueId id) const { return function_->types[id]; }
  const Launch& launch() const { return launch_; }
  std::int64_t program() const { return first_program_; }  // the first of the chunk
  std::int64_t programs() const { return programs_; }
  void add_flops(std::int64_t each_program);
  // The programs that execute, as kI1 for each; if it does not exist, all do.
  const Value& active() const { return active_; }
  [[noreturn]] void fail(const Op& op, const std::string& what) const;

  // Executes a region with its arguments, which must fit its first block's. Returns the operands of
  // what ends it.
  std::vector<Value> execute(const Region& region, const std::vector<Value>& arguments);
  // The same for the programs for which `where` is true. Nothing is executed if there are none.
  std::vector<Value> execute_where(const Value& where, const Region& region,
                                   const std::vector<Value>& arguments);
  std::vector<Value> call(const Function& function, const std::vector<Value>& arguments);
  const Module& module() const { return kernel_.module; }

 private:
  void run_chunk();
  void set_arguments();
  const Op& execute(const BasicBlock& block);
  std::vector<Value> execute_blocks(const Region& region);
  std::vector<Value> ends_with(const Op& op) const;

  const Kernel& kernel_;
  const Launch& launch_;
  const Runs runs_;
  Pool pool_;  // outlives the values
  Memory memory_;
  const Function* function_;
  std::vector<Value> values_;
  Value active_;
  std::int64_t first_program_ = 0;
  std::int64_t programs_ = 0;
  std::int64_t flops_ = 0;
};

}  // namespace ferry::vgpu::triton
