// The effects of a code, including the codes that it calls, on its inputs: which parts of their
// storages it views, which it writes in place, and which results are windows on them.
//
// Pipelines need this to cut a forward into stages (stages.h, stage_checks.h, replicas.h): a value
// that another stage has must not be written in place.
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

// The inputs of a code are its arguments, followed by its saved tensors.
struct Effects {
  struct Window {
    Hull hull;
    std::uint32_t line = 0;
  };
  struct Input {
    std::vector<Window> viewed;            // parts of its storage, also in bodies that save it
    std::optional<std::uint32_t> written;  // the first line that writes it in place
  };
  struct Result {
    std::optional<std::size_t> input;  // set: a window on this input
    std::optional<TypeId> type;        // empty: the input's type, or one that no statement states
    bool tensor = false;               // true: it has a tensor, not only an edge
  };
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::map<Slot, std::uint32_t> written_globals;  // written or moved, with the first such line
};

// Finds the effects of a program's codes, and reads each code once. The program must outlive this
// object and must not change.
class EffectsOf {
 public:
  explicit EffectsOf(const Program& program) : program_(program) {}
  const Effects& operator()(CodeId code);

 private:
  const Program& program_;
  std::map<CodeId, Effects> found_;
};

}  // namespace ferry
