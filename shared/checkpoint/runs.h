// The recomputes of a frame, each with the graph task that owns its results.
//
// A result exists until it is unpacked or no longer needed. A recompute serves one graph task (or
// group) on one thread. If two threads of the engine need the same frame, each recomputes for
// itself: if one waited for the other, it could hold the thread that the other needs.
//
// The lock of the frame guards everything here. No tensor may be dropped under it, so the calls
// return what the caller must drop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"
#include "shared/checkpoint/kept_tensor.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/invariant.h"

namespace ferry {

// One recompute.
template <ComputeDevice D>
struct RecomputeRun {
  using Stream = typename D::Stream;
  struct Result {
    KeptTensor<D> tensor;  // its version shows if the function wrote it after its save
    Stream stream;         // the stream that computed the tensor
  };

  explicit RecomputeRun(std::size_t count) : results(count) {}

  // Call it once for each ordinal.
  void put(std::size_t ordinal, Result result) {
    invariant(ordinal < results.size(), "a result has the ordinal of a saved tensor");
    invariant(!results[ordinal], "a recompute makes each result once");
    results[ordinal].emplace(std::move(result));
  }
  // Returns none if the result was taken before.
  std::optional<Result> take(std::size_t ordinal) {
    invariant(ordinal < results.size(), "a recompute knows each tensor that is unpacked",
              Step::kUnpackRecomputed);
    return std::exchange(results[ordinal], std::nullopt);
  }
  void note(const Stream& stream) {
    const auto same = [&stream](const Stream& known) { return known == stream; };
    if (std::none_of(streams.begin(), streams.end(), same)) streams.push_back(stream);
  }

  std::vector<std::optional<Result>> results;  // by ordinal
  std::size_t packed = 0;
  std::vector<Stream> streams;  // the streams on which tensors were packed
  bool stopped = false;
  std::vector<checkpoint_text::Difference> differences;
};

// Identifies the graph task (or group) and the thread that a recompute serves.
struct RecomputeKey {
  enum class Kind : std::uint8_t { kTask, kGroup, kOutside } kind = Kind::kTask;
  std::int64_t id = 0;
  ThreadId thread{};
  bool operator==(const RecomputeKey&) const = default;
};

template <ComputeDevice D>
class RecomputeRuns {
 public:
  using Run = RecomputeRun<D>;
  using RunRef = std::shared_ptr<Run>;
  using Dropped = std::vector<std::optional<typename Run::Result>>;

  RunRef find(const RecomputeKey& key) const {
    for (const auto& [known, run] : runs_) {
      if (known == key) return run;
    }
    return nullptr;
  }

  void add(const RecomputeKey& key, const RunRef& run) {
    invariant(find(key) == nullptr, "one recompute serves a task on a thread");
    runs_.emplace_back(key, run);
  }

  // Returns true if a run was replaced. Results that were unpacked from the old run are not made
  // again.
  bool replace(const RecomputeKey& key, const RunRef& run, Dropped& dropped) {
    const auto known = std::find_if(runs_.begin(), runs_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (known == runs_.end()) return false;
    const RunRef outgrown = std::exchange(known->second, run);
    invariant(outgrown->results.size() <= run->results.size(),
              "a later recompute makes no fewer tensors");
    for (std::size_t i = 0; i < outgrown->results.size(); ++i) {
      std::optional<typename Run::Result>& result = outgrown->results[i];
      dropped.push_back(std::exchange(result ? result : run->results[i], std::nullopt));
    }
    return true;
  }

  void drop(const RecomputeKey& key, RunRef& dropped) {
    std::erase_if(runs_, [&](auto& entry) {
      if (entry.first != key) return false;
      dropped = std::move(entry.second);
      return true;
    });
  }

  // Drops the result with this ordinal from every run.
  void forget(std::size_t ordinal, Dropped& dropped) {
    for (const auto& [key, run] : runs_) {
      if (ordinal < run->results.size() && run->results[ordinal]) {
        dropped.push_back(std::exchange(run->results[ordinal], std::nullopt));
      }
    }
  }

 private:
  std::vector<std::pair<RecomputeKey, RunRef>> runs_;
};

}  // namespace ferry
