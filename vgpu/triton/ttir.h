// A Triton kernel as data: a module in TTIR, the form in which Triton has a kernel before it is
// lowered to a GPU's threads. reader.h reads it from text.
//
// TTIR is MLIR. A function has a region of blocks, a block has operations, and an operation may
// have regions again (loops, branches, the combiner of a reduction). Each value is assigned once
// and has a number, unique in its function. The structure knows no operation: `name` says which one
// it is, and `words`, `attributes` and the types say the rest, as they stand in the text.
//
// The last three members of an Op are not in the text; kernel.h fills them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ferry::vgpu::triton {

class Machine;

// The type of an element. In a program, kF16, kBF16 and the two kinds of kF8 have values of float
// that are rounded after each operation.
enum class Elem : std::uint8_t {
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kF8E4M3,
  kF8E5M2,
  kF16,
  kBF16,
  kF32,
  kF64,
  kPointer,
  kOther,  // a type that is not run
};
std::int64_t bytes_of(Elem elem);  // in memory; 0 for kOther

struct Type {
  Elem elem = Elem::kOther;
  Elem pointee = Elem::kOther;        // of kPointer
  std::vector<std::int64_t> shape{};  // empty for a scalar
  std::string other{};                // the text of kOther
  std::int64_t elements() const;
};

// A line of the program's source. The file is "" if it is not known.
struct Location {
  std::string file;
  int line = 0;
};
std::string to_string(const Location& location);  // "FILE:LINE", or "an unknown line"

using ValueId = std::uint32_t;
struct Op;

struct BasicBlock {
  std::string label;
  std::vector<ValueId> arguments;
  std::vector<Op> ops;
};
struct Region {
  std::vector<BasicBlock> blocks;
};
struct Successor {
  std::string label;
  std::vector<ValueId> values;
};

struct Op {
  std::string name;  // "arith.addf"
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<std::string> words;                 // words between the operands: "slt", "@helper"
  std::map<std::string, std::string> attributes;  // "axis": "0"
  std::vector<Region> regions;
  std::vector<Successor> successors;
  std::uint32_t location = 0;  // in Module::locations
  std::uint32_t line = 0;      // in the text

  void (*run)(Machine&, const Op&) = nullptr;
  std::vector<ValueId> dies;  // values of the same block that no later operation uses
  bool in_slice = false;      // part of the slice of addresses (slices.h)
};

struct Function {
  std::string name;
  bool is_public = false;
  std::vector<ValueId> arguments;
  std::vector<Type> types;  // of each value
  Region body;
};

struct Module {
  std::vector<Function> functions;
  std::vector<Location> locations;

  const Function* find(const std::string& name) const;
};

}  // namespace ferry::vgpu::triton
