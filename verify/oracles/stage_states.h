// What a pipeline's layers find about them: the caller's autocast; grad mode where the caller has
// it and their stage does not run again; whether they are checkpointed or recomputed, as models ask
// it (torchgpipe's is_checkpointing and is_recomputing); and in a second run the first one's random
// numbers, unless nobody wants that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ferry::verify {

struct StageState {
  bool grad_mode = false;
  bool checkpointing = false;
  bool recomputing = false;
  std::uint32_t ambient = 0;
  std::uint64_t random = 0;  // of the generator; each number that is drawn moves it on
};

class StageStates {
 public:
  // The caller's state. draws: layers draw random numbers. preserves: a second run draws the first
  // one's again.
  struct Callers {
    bool grad_mode = true;
    std::uint32_t ambient = 0;
    bool draws = false;
    bool preserves = true;
  };
  explicit StageStates(const Callers& callers) : callers_(callers) {}

  void step_begins() { first_.clear(); }
  // A stage runs a micro-batch. `again`: in that micro-batch's backward it does once more.
  void runs(std::size_t stage, std::size_t microbatch, bool again, const StageState& found);

  // Empty where there is nothing to complain of.
  const std::string& complaint() const { return complaint_; }

 private:
  std::string wrong(bool second, bool again, const StageState& found, std::uint64_t first) const;

  const Callers callers_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> first_;  // the generator's state
  std::string complaint_;
};

}  // namespace ferry::verify
