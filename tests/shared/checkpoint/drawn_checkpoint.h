// Draws one call of a checkpointed function: the ops that it runs and which of what they make it
// saves, in forward and again. A model says what must come of running it again, by the documented
// rules of torch.utils.checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/seam/checkpoint_options.h"
#include "sim/choices/draws.h"

namespace ferry::test {

struct Act {
  std::size_t op = 0;  // a number of OpsRig's
  bool saves = false;
};
using Acts = std::vector<Act>;

// Where saved tensors are asked for. Outside, every access runs the function again; in a backward
// and in a group's scope one recompute serves all, each once.
enum class Where : std::uint8_t { kOutside, kBackward, kGroup };

// Says what the function does at the end of a recompute, or where it is stopped.
enum class Manner : std::uint8_t { kPlain, kRaises, kCatchesStop };
inline constexpr const char* kOwnError = "the function's own error";

struct DrawnCheckpoint {
  Acts forward, again;
  CoreCheckpointOptions options;
  std::optional<bool> early_stop, debug;  // of the guards around
  Where where = Where::kOutside;
  Manner manner = Manner::kPlain;
  std::vector<bool> dropped = {};  // by place of what it saves: nobody needs it any more
  bool hooked = false;             // there are hooks around
  bool pops = false;               // a skip tensor
  bool contexts = false;           // it has a context_fn

  bool stops() const { return early_stop.value_or(options.early_stop); }
  bool debugs() const { return debug.value_or(options.debug); }
  // Whether a recompute makes what is saved at that place.
  bool is_held(std::size_t place) const {
    return choice(place) == SavedChoice::kRecompute && !dropped[place];
  }
  // The fate of the tensor that it saves at that place.
  SavedChoice choice(std::size_t place) const {
    return place < options.choices.size() ? options.choices[place] : SavedChoice::kRecompute;
  }
};

DrawnCheckpoint draw_checkpoint(choices::Draws& draws);

// Returns the ops of what the acts save.
std::vector<std::size_t> saved_by(const Acts& acts);

// This comes of each recompute.
struct Recomputed {
  std::vector<std::string> facts;  // that its error says; none: no error
  std::vector<std::string> ops;    // that ran, as a log names them
  bool stopped = false;            // early, without an error of that
  std::uint64_t random = 0;        // numbers that were drawn
};

Recomputed what_comes_of(const DrawnCheckpoint& call);

}  // namespace ferry::test
