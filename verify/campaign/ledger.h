// The ledger distributes the programs of a campaign in blocks of numbers. Threads of this process,
// or other processes, take blocks in order and give them back after they tried them.
//
// The result does not depend on how many threads there are. When a program fails, no later block is
// started, earlier blocks are waited for, and later blocks that were already tried do not count. So
// the counts include exactly the programs up to the first one that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "verify/campaign/coverage.h"
#include "verify/campaign/run_spec.h"

namespace ferry::verify {

struct Failure {
  std::uint64_t number = 0;
  RunSpec spec;
  Verdict verdict;
};

// The numbers from `first` to `end`, without `end`.
struct ProgramRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

struct TriedBlock {
  ProgramRange block;
  Coverage coverage;  // of the programs until the failure or the end of time
  std::optional<Failure> failure;
};

// States that all programs before `end` were tried and none failed.
struct Settled {
  std::uint64_t end = 0;
  Coverage coverage;
};

// Thread-safe.
class Ledger {
 public:
  // Distributes the numbers before `end` in blocks of `block_size`, until `late` returns true.
  Ledger(std::uint64_t end, std::uint64_t block_size, std::function<bool()> late,
         Settled from = {});
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  std::optional<ProgramRange> take();  // returns nothing if no block is left
  void give(TriedBlock tried);

  bool is_waiting() const;     // true if a block that counts is not given back yet
  std::int64_t tried() const;  // all programs that were given back
  // Returns the sum over the blocks that count.
  Coverage coverage() const;
  // Returns the state from which a campaign that ends now can continue.
  Settled settled() const;
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  struct Waiting {
    std::uint64_t end = 0;
    bool whole = false;  // all of its programs were tried and none failed
    Coverage coverage;
  };

  bool counts(std::uint64_t number) const { return !failure_ || number <= failure_->number; }

  const std::uint64_t end_;
  const std::uint64_t block_size_;
  const std::function<bool()> late_;
  mutable std::mutex mutex_;
  std::uint64_t next_;
  std::set<std::uint64_t> out_;               // first numbers of the blocks that threads have taken
  std::map<std::uint64_t, Waiting> waiting_;  // blocks tried after settled_.end, by first number
  Settled settled_;
  std::int64_t tried_;
  std::optional<Failure> failure_;
};

}  // namespace ferry::verify
