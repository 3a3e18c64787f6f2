// A code that is being built: its statements, and the slots that they use. lower.cpp and bodies.h
// build the codes of a program with it.
//
// Each window on a storage has one slot. The op that makes a storage gives it its first slot. When
// another window is used for the first time, a view statement makes its slot. A death frees all
// slots of a storage before the next statement.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/program.h"
#include "real/capture/trace.h"

namespace ferry::real::capture {

// The types of the program, each listed once.
class Types {
 public:
  explicit Types(std::vector<Layout>& types) : types_(types) {}
  TypeId id(const Layout& layout);
  const Layout& layout(TypeId id) const { return types_[id]; }

 private:
  std::vector<Layout>& types_;
  std::map<Ref, TypeId> ids_;  // for windows of storage 0
};

// Returns the whole storage as one window, in elements of `dtype` if its size is a multiple of
// them.
Layout whole(std::int64_t bytes, DType dtype);
bool reaches_end(const Layout& layout, std::int64_t bytes);

// The globals, and the windows and storages by which they are found.
class Globals {
 public:
  Globals(const Trace& trace, Types& types, std::vector<Global>& globals);

  const Slot* find(const Ref& ref) const;         // a global for this window, or null
  const Slot* base(StorageNumber storage) const;  // a global on this storage, or null
  Slot leaf(std::uint32_t number) const { return leaves_[number]; }
  Slot count() const { return static_cast<Slot>(globals_.size()); }

 private:
  Slot add(GlobalKind kind, std::string name, const Ref& ref, bool requires_grad);

  const Trace& trace_;
  Types& types_;
  std::vector<Global>& globals_;
  std::map<Ref, Slot> slots_;
  std::map<StorageNumber, Slot> bases_;
  std::vector<Slot> leaves_;
};

class Frame {
 public:
  Frame(const Trace& trace, Types& types, const Globals& globals)
      : trace_(trace), types_(types), globals_(globals), next_(globals.count()) {}

  Slot fresh() { return next_++; }
  void emit(Action action);
  void free(Slot slot) { dying_.push_back(slot); }
  // Writes pending frees at the end of the code.
  void flush();

  // Records that `slot` holds the storage of `ref`, with the window `ref`.
  void own(const Ref& ref, Slot slot);
  // Returns a slot for this window. The storage must be known here, or belong to a global.
  Slot slot(const Ref& ref);
  bool knows(StorageNumber storage) const;
  void op(const OpEvent& event);
  // Adds an op that makes an input which nothing made.
  void meet(const Ref& ref);
  void death(StorageNumber storage);
  // Begins a call with these arguments; `leave` ends it. Inside the call their storages are used
  // through the arguments only, and what the call makes belongs to it. Calls nest.
  void enter(const std::vector<Ref>& arguments, const std::vector<Slot>& slots);
  void leave() { inside_.pop_back(); }
  bool in_call() const { return !inside_.empty(); }
  // Returns the storages with a slot here, each with its first slot.
  const std::map<StorageNumber, Slot>& bases() const { return bases_; }
  // Returns the first window of the storage here, with its slot. There must be one.
  const std::pair<Ref, Slot>& first(StorageNumber storage) const {
    return owned_.at(storage).front();
  }
  // Returns a slot on the storage, in this frame or global, or null.
  const Slot* base(StorageNumber storage) const;

  std::vector<Statement> statements;

 private:
  struct Inside {
    std::vector<std::pair<Ref, Slot>> arguments;
    std::map<Ref, Slot> slots;
  };

  Slot output(const Ref& ref, Op& op);
  Slot view(const Ref& ref, Slot of);

  const Trace& trace_;
  Types& types_;
  const Globals& globals_;
  Slot next_;
  std::map<Ref, Slot> slots_;
  std::map<StorageNumber, Slot> bases_;
  std::map<StorageNumber, std::vector<std::pair<Ref, Slot>>> owned_;
  std::vector<Slot> dying_;
  std::vector<Inside> inside_;
};

}  // namespace ferry::real::capture
