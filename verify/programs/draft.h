// A random program while it is being built. Draft has the builder that all parts write to, the
// globals that they read, and what they share: bodies of autograd nodes, and switches to another
// stream and back.
//
// Nodes differ in what they save. Their bodies are mostly the same: each result is an op that reads
// everything the body has. If the step takes higher derivatives, a body also makes a node for its
// own results, and that node has such a body again.
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
  // The recipe must outlive the draft.
  explicit Draft(const Recipe& made_of);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  TypeId sized(int size) {
    std::optional<TypeId>& known = sized_[static_cast<std::size_t>(size)];
    if (!known) known = b.type({kSizes[static_cast<std::size_t>(size)]});
    return *known;
  }

  // Makes a body for a node with this output type, these input types and this number of saved
  // tensors. `fails`: the body raises. `first_saved` is the type of the first saved tensor, given
  // only if that tensor has a graph.
  CodeId make_body(TypeId out, const std::vector<TypeId>& in, std::size_t saves, bool fails = false,
                   std::optional<TypeId> first_saved = {});

  // Switches to the stream after `from` for the code that follows, and back to `from`. `in` and
  // `out` are the tensors that the other stream uses.
  void begin_stream(CodeId id, const std::vector<Slot>& in, std::uint32_t from);
  void end_stream(CodeId id, const std::vector<Slot>& out, std::uint32_t from);

  const Recipe& recipe;
  Builder b;
  TypeId scalar = 0;
  Slot input = 0;
  Slot first = 0;             // parameter of the embedding
  std::vector<Slot> weights;  // by layer
  CodeId inner = 0;           // code of the function that a nested backward differentiates

 private:
  CodeId make_body_of_order(int order, const std::vector<TypeId>& gradients,
                            std::vector<std::optional<TypeId>> saved, const std::vector<TypeId>& in,
                            bool fails);
  CodeId make_inner();

  const int orders_;
  std::array<std::optional<TypeId>, kSizes.size()> sized_;  // types by size, made on first use
};

}  // namespace ferry::verify
