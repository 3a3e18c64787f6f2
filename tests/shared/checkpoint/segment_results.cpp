#include "tests/shared/checkpoint/segment_results.h"

#include <algorithm>
#include <utility>

namespace ferry::test {
namespace {

const std::string kPrefix = "ferry::checkpoint: ";

const std::string kTip =
    "\nTip: to see a more detailed error message, pass `debug(true)` to `ferry::checkpoint`, or "
    "wrap the code with `ferry::CheckpointDebugGuard guard(true);`.\n";

// As shapes are said. Tensors of a script have as many bytes as elements.
std::string shape_text(std::int64_t bytes) {
  return "shape [" + std::to_string(bytes) + "], dtype u8";
}

}  // namespace

std::string SegmentResults::unpack(std::size_t ordinal, const Whom& whom, std::uint32_t stream) {
  if (!is_recomputed(ordinal)) {
    const int written = writes_[ordinal];
    if (written == 0 || shape_.fates[ordinal] == SavedChoice::kOffload) return "";
    return "one of the variables needed for gradient computation has been modified by an inplace "
           "operation: it is at version " +
           std::to_string(written) + "; expected version 0 instead";
  }
  const bool outside = whom.group < 0 && whom.task < 0;
  const Key key{whom.group >= 0 ? Served{0, whom.group} : Served{1, whom.task}, whom.thread};
  const auto known = outside ? runs_.end() : runs_.find(key);
  Run own;
  Run* run = known == runs_.end() ? nullptr : &known->second;
  if (!run || ordinal >= run->size) {
    std::string error = recompute(own);
    if (!error.empty()) return error;
    // What was unpacked before, or dropped, does not come again.
    if (run)
      std::erase_if(own.ready,
                    [run](std::size_t i) { return i < run->size && !run->ready.contains(i); });
    run = outside ? &own : &(runs_[key] = own);
  }
  if (run->ready.erase(ordinal) > 0) {
    if (stream != shape_.streams[ordinal] && ordinal != shape_.elsewhere) ++waits_;
    return "";
  }
  std::string twice =
      kPrefix + "Unpack is being triggered for a tensor that was already unpacked once. ";
  if (whom.group >= 0) {
    twice +=
        "Performing two backward calls that overlap (i.e. require the same saved activation in "
        "order to compute gradients) is not allowed while under the ferry::GraphExecGroup "
        "context. ";
  }
  return twice +
         "If you are unpacking saved tensors in a backward of your own, make sure to do so "
         "only once.";
}

std::string SegmentResults::recompute(Run& run) {
  ++recomputes_;
  ops_.clear();
  run.size = alive_.size();
  std::string error = run_again(run);
  return error.starts_with(kPrefix) && shape_.debug ? in_debug(error) : error;
}

// Saves as forward did, but for the deviation, until all that is needed is there.
std::string SegmentResults::run_again(Run& run) {
  std::size_t needed = 0;
  for (std::size_t i = 0; i < run.size; ++i) {
    if (is_recomputed(i)) needed = i + 1;
  }
  std::size_t saves = shape_.packs;
  if (shape_.deviation == Deviation::kFewer) --saves;
  if (shape_.deviation == Deviation::kMore) ++saves;
  std::string other;
  bool stopped = false;
  for (std::size_t i = 0; i < saves && !stopped; ++i) {
    if (shape_.deviation == Deviation::kRaises && i == shape_.place) return kSegmentRaises;
    make(i, shape_.deviation == Deviation::kOtherSize && i == shape_.place);
    if (i >= run.size && complete_) {
      return kPrefix +
             "trying to save more tensors during recomputation than during the original forward "
             "pass." +
             kTip;
    }
    if (i < run.size && alive_[i] && is_recomputed(i)) {
      run.ready.insert(i);
      if (shape_.deviation == Deviation::kOtherSize && i == shape_.place && shape_.compares) {
        other = "\ntensor at position " + std::to_string(i) +
                ":\nsaved metadata: " + shape_text(segment_bytes(i)) +
                "\nrecomputed metadata: " + shape_text(2 * segment_bytes(i)) + "." + kTip;
      }
    }
    stopped = shape_.early_stop && i + 1 >= needed;
  }
  if (stopped) {
    const std::string error = ended_early(needed);
    if (!error.empty()) return error;
  } else if (complete_ && saves != run.size) {
    return kPrefix + "A different number of tensors was saved during the original forward and " +
           "recomputation.\nNumber of tensors saved during forward: " + std::to_string(run.size) +
           "\nNumber of tensors saved during recomputation: " + std::to_string(saves) + "." + kTip;
  }
  if (!complete_ || other.empty()) return "";
  return kPrefix + "Recomputed values for the following tensors have different metadata than " +
         "during the forward pass." + other;
}

// What becomes of a function that is stopped, once its stream has waited for the others on which it
// saved what is there.
std::string SegmentResults::ended_early(std::size_t saved) {
  std::set<std::uint32_t> others(shape_.streams.begin(),
                                 shape_.streams.begin() + static_cast<std::ptrdiff_t>(saved));
  others.erase(0);
  waits_ += static_cast<std::int64_t>(others.size());
  const Deviation how = shape_.deviation;
  if (how == Deviation::kGoesOn) make(saved - 1, false);
  if (how == Deviation::kGoesOn || how == Deviation::kReturns) {
    return kPrefix +
           "the checkpointed function caught the exception that ends its recompute early. Let "
           "exceptions that are not yours pass, or turn early_stop off.";
  }
  ++stopped_;
  return "";
}

void SegmentResults::make(std::size_t ordinal, bool other) {
  ++made_;
  ops_.push_back(segment_op(ordinal, other));
}

std::string SegmentResults::in_debug(const std::string& error) const {
  std::vector<std::string> first;  // known once forward is over
  for (std::size_t i = 0; i < shape_.packs && complete_; ++i) first.push_back(segment_op(i));
  std::size_t at = 0;
  while (at < first.size() && at < ops_.size() && first[at] == ops_[at]) ++at;
  const auto named = [at](const std::vector<std::string>& ops) {
    return at < ops.size() ? ops[at] : "(no op)";
  };
  std::string text =
      "ERROR: Detected non-determinism while running activation checkpointing\n\n" + error + "\n\n";
  if (first == ops_) {
    text += "The " + std::to_string(at) + " ops of forward and of recomputation are the same.\n";
  } else {
    text += "First op that differs (number " + std::to_string(at) +
            "):\n  forward:   " + named(first) + "\n  recompute: " + named(ops_) + "\n";
  }
  const auto list = [&text](const std::string& of, const std::vector<std::string>& ops) {
    text += "\nOperations of the " + of + " (" + std::to_string(ops.size()) + " ops):\n";
    for (const std::string& op : ops) text += "  " + op + "\n";
  };
  list("original forward", first);
  list("recomputation", ops_);
  return text +
         "\nYou are seeing this error because you passed `debug(true)` to ferry::checkpoint, or a "
         "ferry::CheckpointDebugGuard is in force.\n";
}

void SegmentResults::drop(std::size_t ordinal) {
  alive_[ordinal] = false;
  for (auto& [key, run] : runs_) run.ready.erase(ordinal);
}

void SegmentResults::end(const Served& served) {
  std::erase_if(runs_, [&served](const auto& entry) { return entry.first.first == served; });
}

std::int64_t SegmentResults::alive() const {
  std::int64_t alive = 0;
  bool recomputes = !complete_;
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    if (alive_[i] && !is_recomputed(i)) ++alive;
    if (alive_[i] && is_recomputed(i)) recomputes = true;
  }
  for (const auto& [key, run] : runs_) alive += static_cast<std::int64_t>(run.ready.size());
  return alive + (recomputes ? 1 : 0);
}

CheckpointStatistics SegmentResults::counted() const {
  CheckpointStatistics counted;
  counted.segments = 1;
  counted.recomputes = recomputes_;
  counted.stopped_early = stopped_;
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    ++(is_recomputed(i)                           ? counted.saved
       : shape_.fates[i] == SavedChoice::kOffload ? counted.passed_on
                                                  : counted.kept);
  }
  return counted;
}

}  // namespace ferry::test
