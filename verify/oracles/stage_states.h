// Checks the state that a pipeline's layers see. try_pipeline.h reports what each stage finds, on
// workers that begin with the state of a new thread (fresh_workers.h):
//
// * autocast as the caller set it;
// * grad mode if the caller has it and the stage is not recomputed later;
// * whether they are checkpointed or recomputed (torchgpipe's is_checkpointing and is_recomputing);
// * in a recompute, the same random numbers as in forward, unless the caller does not want that.
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
  std::uint64_t random = 0;  // position of the generator; it grows with each number that is drawn
};

class StageStates {
 public:
  // The state of the caller. `draws`: layers draw random numbers. `preserves`: a recompute draws
  // the same ones again.
  struct Callers {
    bool grad_mode = true;
    std::uint32_t ambient = 0;
    bool draws = false;
    bool preserves = true;
  };
  explicit StageStates(const Callers& callers) : callers_(callers) {}

  void step_begins() { first_.clear(); }
  // Called when a stage runs a micro-batch. `again`: it is recomputed in the micro-batch's
  // backward.
  void runs(std::size_t stage, std::size_t microbatch, bool again, const StageState& found);

  // Empty if there is no complaint.
  const std::string& complaint() const { return complaint_; }

 private:
  std::string wrong(bool second, bool again, const StageState& found, std::uint64_t first) const;

  const Callers callers_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> first_;  // the generator, first run
  std::string complaint_;
};

}  // namespace ferry::verify
