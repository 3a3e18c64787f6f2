// Reads the stacks and the marks of a memory snapshot (memory_snapshot.h).
//
// PyTorch writes each stack once and refers to it from every entry that has it, so a stack is read
// once for its place in the pickle. Stacks and frames that are equal get one number even if the
// pickle has them several times. What is not a list of frames counts as an empty stack, and a frame
// that lacks a value has an empty text or 0 there: a snapshot without good stacks is still a
// snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/memory_snapshot.h"
#include "formats/pickle.h"

namespace ferry {

// The document must outlive it.
class StackReader {
 public:
  explicit StackReader(const pickle::Document& document) : document_(document) {}

  // Returns the stack of a block or an entry: its "frames".
  StackId stack_of(const pickle::Value& dict);
  // Stores the frames and stacks. Call it once, at the end.
  void move_to(MemorySnapshot& snapshot);

 private:
  std::uint32_t frame(const pickle::Value& dict);

  const pickle::Document& document_;
  std::map<const pickle::Value*, StackId> lists_;
  std::map<const pickle::Value*, std::uint32_t> dicts_;
  std::map<MemoryFrame, std::uint32_t> frames_;
  std::map<std::vector<std::uint32_t>, StackId> stacks_;
};

// Returns the marks in "external_annotations"; none if there is no such list.
std::vector<MemoryMark> read_marks(const pickle::Document& document);

}  // namespace ferry
