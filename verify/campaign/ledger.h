// Who tries which programs of a campaign: blocks of numbers are taken, in order, and given back
// tried.
//
// The threads of this process take them, and so may other processes. What the campaign says does
// not depend on how many there were: where a program fails, no block beyond it is begun, those
// before it are waited for, and those beyond it that were tried do not count. So the counts are
// those of the programs up to the first that fails, it included.
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

// From `first` on, before `end`.
struct ProgramRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

struct TriedBlock {
  ProgramRange block;
  Coverage coverage;  // up to its failure, or to where time ended it
  std::optional<Failure> failure;
};

// All programs before `end` were tried, and none failed.
struct Settled {
  std::uint64_t end = 0;
  Coverage coverage;
};

// Any number of threads may call it.
class Ledger {
 public:
  // Of the numbers before `end`, in blocks of so many, until `late`.
  Ledger(std::uint64_t end, std::uint64_t block_size, std::function<bool()> late,
         Settled from = {});
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  std::optional<ProgramRange> take();  // none: there is no more
  void give(TriedBlock tried);

  bool is_waiting() const;     // for a block that counts
  std::int64_t tried() const;  // programs, as far as they were told
  // What counts.
  Coverage coverage() const;
  // From where a campaign that ends now can go on.
  Settled settled() const;
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  struct Waiting {
    std::uint64_t end = 0;
    bool whole = false;  // and no failure in it
    Coverage coverage;
  };

  bool counts(std::uint64_t number) const { return !failure_ || number <= failure_->number; }

  const std::uint64_t end_;
  const std::uint64_t block_size_;
  const std::function<bool()> late_;
  mutable std::mutex mutex_;
  std::uint64_t next_;
  std::set<std::uint64_t> out_;               // the first numbers of blocks that were taken
  std::map<std::uint64_t, Waiting> waiting_;  // tried after what is settled, by first numbers
  Settled settled_;
  std::int64_t tried_;
  std::optional<Failure> failure_;
};

}  // namespace ferry::verify
