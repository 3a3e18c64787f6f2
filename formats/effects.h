// The effects of a code, with its calls, on its inputs.
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
    std::vector<Window> viewed;            // of its storage, also in bodies that save it
    std::optional<std::uint32_t> written;  // the first line that writes it in place
  };
  struct Result {
    std::optional<std::size_t> input;  // set: a window on this input
    std::optional<TypeId> type;        // none: the input's type, or one that no statement states
    bool tensor = false;               // true: a tensor, not an edge alone
  };
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::map<Slot, std::uint32_t> written_globals;  // written or moved, with the first such line
};

// The effects of one program's codes. The program outlives it unchanged; each code is read once.
class EffectsOf {
 public:
  explicit EffectsOf(const Program& program) : program_(program) {}
  const Effects& operator()(CodeId code);

 private:
  const Program& program_;
  std::map<CodeId, Effects> found_;
};

}  // namespace ferry
