// A random program while it is being made: the builder that all its parts write to, the globals
// that they read, and what they have in common, which is the bodies of nodes and the ways onto
// another stream and back.
//
// Nodes differ in what they save; what their bodies do is mostly the same: each result is an op on
// everything that the body has. Where a program takes further derivatives, a body makes a node for
// its own results, which has such a body again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/builder.h"
#include "verify/programs/recipe.h"

namespace ferry::verify {

class Draft {
 public:
  // The recipe outlives the draft.
  explicit Draft(const Recipe& made_of);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  TypeId sized(int size) {
    std::optional<TypeId>& known = sized_[static_cast<std::size_t>(size)];
    if (!known) known = b.type({kSizes[static_cast<std::size_t>(size)]});
    return *known;
  }

  // Makes a body for a node with this output, these inputs and saves: its results are ops on all
  // it has. The type of the first saved tensor is given where that tensor has a graph.
  CodeId make_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves, bool fails = false,
                   std::optional<TypeId> first_saved = {});

  // Lets what follows run on the stream next to `from`, and on `from` again.
  void begin_stream(CodeId id, const std::vector<Slot>& in, std::uint32_t from);
  void end_stream(CodeId id, const std::vector<Slot>& out, std::uint32_t from);

  const Recipe& recipe;
  Builder b;
  TypeId scalar = 0;
  Slot input = 0;
  Slot first = 0;             // the embedding's parameter
  std::vector<Slot> weights;  // by layer
  CodeId inner = 0;           // the region that a nested backward differentiates

 private:
  CodeId make_body_of_order(int order, const std::vector<TypeId>& gradients,
                            std::vector<std::optional<TypeId>> saved, const std::vector<TypeId>& in,
                            bool fails);
  CodeId make_inner();

  const int orders_;
  std::array<std::optional<TypeId>, kSizes.size()> sized_;  // those that were asked for
};

}  // namespace ferry::verify
