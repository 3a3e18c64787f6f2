// A model of what one checkpointed segment gives back: which tensor that it saved comes back when,
// which recomputes that takes and how far they run, what is refused, and what is alive meanwhile.
//
// The rules (shared/checkpoint/checkpointer.h): the first tensor that is needed in a graph task, on
// a thread, or in a group of backwards brings back all that autograd still has. Each comes once. It
// goes when it is unpacked, when autograd drops it, and when the task or the group ends. Outside of
// any, each brings back its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/checkpoint_options.h"

namespace ferry::test {

// How a recompute differs from forward.
enum class Deviation : std::uint8_t {
  kNone,
  kOtherSize,  // the tensor at a place
  kFewer,      // the last one is not saved
  kMore,       // one is saved beyond the last
  kRaises,     // before a place
  kReturns,    // the function catches what ends it early, and returns
  kGoesOn,     // it catches that, and goes on saving
  kOwnError,   // it catches that, and throws an error of its own, as an interpreter does
};
inline constexpr int kDeviations = static_cast<int>(Deviation::kOwnError) + 1;
inline constexpr const char* kSegmentRaises = "a recompute raises";
// The size of the tensor with that ordinal.
constexpr std::int64_t segment_bytes(std::size_t ordinal) {
  return 512 * (static_cast<std::int64_t>(ordinal) + 1);
}

struct SegmentShape {
  std::size_t packs = 0;
  std::vector<SavedChoice> fates;  // what becomes of each; kOffload: the hooks around have it
  bool early_stop = true;
  bool compares = true;
  bool debug = false;
  Deviation deviation = Deviation::kNone;
  std::size_t place = 0;
  std::vector<std::uint32_t> streams;  // that each is saved on; 0: the segment's
  std::size_t elsewhere = 0;           // the one that is on another device; `packs`: none is
};
// The op that makes that tensor, as a log has it. `other`: it makes one of another size.
inline std::string segment_op(std::size_t ordinal, bool other = false) {
  return (other ? "other" : "op") + std::to_string(ordinal);
}

class SegmentResults {
 public:
  // Whom a recompute serves: the number of a group, or of a task; negative: none.
  struct Whom {
    std::int64_t group = -1;
    std::int64_t task = -1;
    int thread = 0;
  };

  explicit SegmentResults(SegmentShape shape) : shape_(std::move(shape)) {}

  void packed() { alive_.push_back(true); }
  void complete() { complete_ = true; }
  // What the tensor's unpacking on that stream throws; empty: nothing.
  std::string unpack(std::size_t ordinal, const Whom& whom, std::uint32_t stream);
  void drop(std::size_t ordinal);
  void write(std::size_t ordinal) { ++writes_[ordinal]; }
  void task_ended(std::int64_t task) { end({1, task}); }
  void group_ended(std::int64_t group) { end({0, group}); }

  bool is_recomputed(std::size_t ordinal) const {
    return shape_.fates[ordinal] == SavedChoice::kRecompute;
  }
  std::size_t packs() const { return alive_.size(); }  // so far
  // Storages: of what is ready to be unpacked, of tensors that are kept, and of the input.
  std::int64_t alive() const;
  // What the core counts.
  CheckpointStatistics counted() const;
  std::int64_t tensors_made() const { return made_; }  // by recomputes
  std::int64_t waits() const { return waits_; }        // of streams for what is recomputed

 private:
  struct Run {
    std::size_t size = 0;  // what forward had saved when it began
    std::set<std::size_t> ready;
  };
  using Served = std::pair<int, std::int64_t>;  // a group or a task, and its number
  using Key = std::pair<Served, int>;           // and the thread

  std::string recompute(Run& run);
  std::string run_again(Run& run);
  std::string ended_early(std::size_t saved);
  void make(std::size_t ordinal, bool other);
  std::string in_debug(const std::string& error) const;
  void end(const Served& served);

  const SegmentShape shape_;
  std::vector<bool> alive_;  // by ordinal: autograd has it
  std::map<std::size_t, int> writes_;
  std::map<Key, Run> runs_;
  bool complete_ = false;
  std::int64_t recomputes_ = 0;
  std::int64_t stopped_ = 0;
  std::int64_t made_ = 0;
  std::int64_t waits_ = 0;
  std::vector<std::string> ops_;  // of the latest recompute
};

}  // namespace ferry::test
