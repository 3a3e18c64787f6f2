// One code of a program in the making: its statements, and the slots that they have given out.
//
// One slot for each window on a storage: the op that makes a storage gives it its first slot, and a
// view follows where another window is first used. A death frees all slots of a storage, before the
// next statement.
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

// The program's types, each once.
class Types {
 public:
  explicit Types(std::vector<Layout>& types) : types_(types) {}
  TypeId id(const Layout& layout);
  const Layout& layout(TypeId id) const { return types_[id]; }

 private:
  std::vector<Layout>& types_;
  std::map<Ref, TypeId> ids_;  // of refs to storage 0
};

// The whole storage, as a window on it: in elements of `dtype` where that divides it.
Layout whole(std::int64_t bytes, DType dtype);
bool reaches_end(const Layout& layout, std::int64_t bytes);

// The globals, and where storages of theirs are found.
class Globals {
 public:
  Globals(const Trace& trace, Types& types, std::vector<Global>& globals);

  const Slot* find(const Ref& ref) const;         // a global of this window, or null
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
  // Frees that nothing followed.
  void flush();

  // The storage of `ref` is at `slot`, whose window that is.
  void own(const Ref& ref, Slot slot);
  // A slot of this window. The storage must be known here, or be a global's.
  Slot slot(const Ref& ref);
  bool knows(StorageNumber storage) const;
  void op(const OpEvent& event);
  // What an op was handed and nobody made: an op makes it, here.
  void meet(const Ref& ref);
  void death(StorageNumber storage);
  // A call that was handed these, until `leave`: what it sees of their storages, it sees through
  // its arguments, and what it makes of them is its own. Calls nest.
  void enter(const std::vector<Ref>& arguments, const std::vector<Slot>& slots);
  void leave() { inside_.pop_back(); }
  bool in_call() const { return !inside_.empty(); }
  // Storages that have a slot here, with the first of each.
  const std::map<StorageNumber, Slot>& bases() const { return bases_; }
  // Its first window here, and that one's slot; the storage must have one.
  const std::pair<Ref, Slot>& first(StorageNumber storage) const {
    return owned_.at(storage).front();
  }
  // A slot on the storage, here or a global; null: none.
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
