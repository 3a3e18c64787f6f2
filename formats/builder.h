// Builds programs in C++ code, for tests, benchmarks and the random programs of ferry verify. It
// numbers the slots, codes and types, and makes an empty main code first.
//
// It checks nothing: formats/program_check.h does. Add all globals before the first slot of a
// code, because a code's own slots are numbered after them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "formats/program.h"

namespace ferry {

class Builder {
 public:
  Builder() {
    program.codes.reserve(32);  // avoids moving the first codes again and again
    code(CodeKind::kMain, "");
  }

  TypeId type(std::vector<std::int64_t> shape, DType dtype = DType::kBF16) {
    return layout(contiguous_layout(dtype, std::move(shape)));
  }
  TypeId layout(Layout layout) {
    for (TypeId id = 0; id < program.types.size(); ++id) {
      if (program.types[id] == layout) return id;
    }
    program.types.push_back(std::move(layout));
    return static_cast<TypeId>(program.types.size() - 1);
  }

  // Call it for all globals before the first call of slot().
  Slot global(GlobalKind kind, TypeId type_id) {
    const auto slot = static_cast<Slot>(program.globals.size());
    const bool parameter = kind == GlobalKind::kParameter;
    program.globals.push_back(
        {kind, "global" + std::to_string(slot), type_id, parameter, kNoSlot, 0});
    return slot;
  }

  CodeId code(CodeKind kind, std::string name) {
    program.codes.push_back({kind, std::move(name), {}, {}, {}, {}, 0});
    program.codes.back().statements.reserve(4);  // most bodies have no more
    next_.push_back(0);
    return static_cast<CodeId>(program.codes.size() - 1);
  }
  Slot slot(CodeId id) { return static_cast<Slot>(program.globals.size()) + next_[id]++; }
  Slot argument(CodeId id) {
    program.codes[id].arguments.push_back(slot(id));
    return program.codes[id].arguments.back();
  }
  Slot saved(CodeId id) {
    program.codes[id].saved.push_back(slot(id));
    return program.codes[id].saved.back();
  }
  void result(CodeId id, Slot value) { program.codes[id].results.push_back(value); }
  void add(CodeId id, Action action) {
    program.codes[id].statements.push_back({std::move(action), 0});
  }

  Slot op(CodeId id, std::string name, std::vector<Slot> in, TypeId out) {
    Op op;
    op.name = std::move(name);
    op.in = std::move(in);
    op.out = {slot(id)};
    op.types = {out};
    const std::int64_t bytes = storage_bytes(program.types[out]);
    op.read_bytes = 2 * bytes;
    op.written_bytes = bytes;
    const Slot made = op.out.front();
    add(id, std::move(op));
    return made;
  }
  void write(CodeId id, std::string name, Slot tensor) {
    Op op;
    op.name = std::move(name);
    op.in = {tensor};
    op.writes = {0};
    add(id, std::move(op));
  }
  Slot view(CodeId id, Slot of, TypeId type_id) {
    const Slot made = slot(id);
    add(id, View{made, of, type_id});
    return made;
  }
  std::uint32_t node_id() { return nodes_++; }

  Program program;

 private:
  std::vector<Slot> next_;
  std::uint32_t nodes_ = 0;
};

}  // namespace ferry
