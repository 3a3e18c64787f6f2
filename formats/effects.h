// What a code does to what it is handed, calls included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "formats/program.h"

namespace ferry {

// The inputs of a code are its arguments and, behind them, its saved tensors.
struct Effects {
  struct Window {
    Hull hull;
    std::uint32_t line = 0;
  };
  struct Input {
    std::vector<Window> viewed;            // on the storage, also by bodies that it was saved for
    std::optional<std::uint32_t> written;  // in place: the first such line
  };
  struct Result {
    std::optional<std::size_t> input;  // a window on this one
    std::optional<TypeId> type;        // none: the input's, or one that no statement says
    bool tensor = false;               // other than an edge alone
  };
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::map<Slot, std::uint32_t> written_globals;  // and moved ones; with the first such line
};

// Of the codes of one program, which outlives this and does not change; each is read once.
class EffectsOf {
 public:
  explicit EffectsOf(const Program& program) : program_(program) {}
  const Effects& operator()(CodeId code);

 private:
  const Program& program_;
  std::map<CodeId, Effects> found_;
};

}  // namespace ferry
