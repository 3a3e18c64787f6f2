#include "verify/campaign/ledger.h"

#include <algorithm>
#include <utility>

namespace ferry::verify {

namespace {

// Returns false if a program failed, or if the time ended before all programs, or all ways of a
// program, were tried.
bool is_whole(const TriedBlock& tried) {
  const auto programs = static_cast<std::uint64_t>(tried.coverage.programs);
  return !tried.failure && tried.coverage.cut_off == 0 &&
         programs == tried.block.end - tried.block.first;
}

}  // namespace

Ledger::Ledger(std::uint64_t end, std::uint64_t block_size, std::function<bool()> late,
               Settled from)
    : end_(end),
      block_size_(block_size),
      late_(std::move(late)),
      next_(from.end),
      settled_(std::move(from)),
      tried_(settled_.coverage.programs) {}

std::optional<ProgramRange> Ledger::take() {
  const std::lock_guard lock(mutex_);
  if (next_ >= end_ || !counts(next_) || late_()) return std::nullopt;
  const ProgramRange block{next_, next_ + std::min(block_size_, end_ - next_)};
  out_.insert(block.first);
  next_ = block.end;
  return block;
}

void Ledger::give(TriedBlock tried) {
  const std::lock_guard lock(mutex_);
  out_.erase(tried.block.first);
  tried_ += tried.coverage.programs;
  const bool whole = is_whole(tried);
  waiting_[tried.block.first] = {tried.block.end, whole, std::move(tried.coverage)};
  const auto& failure = tried.failure;
  if (failure && (!failure_ || failure->number < failure_->number)) {
    failure_ = std::move(tried.failure);
  }
  // Settles the blocks that follow settled_.end without a gap.
  for (auto found = waiting_.begin();
       found != waiting_.end() && found->first == settled_.end && found->second.whole;
       found = waiting_.erase(found)) {
    settled_.end = found->second.end;
    settled_.coverage += found->second.coverage;
  }
}

bool Ledger::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return !out_.empty() && counts(*out_.begin());
}

std::int64_t Ledger::tried() const {
  const std::lock_guard lock(mutex_);
  return tried_;
}

Coverage Ledger::coverage() const {
  const std::lock_guard lock(mutex_);
  Coverage all = settled_.coverage;
  for (const auto& [first, tried] : waiting_) {
    if (counts(first)) all += tried.coverage;
  }
  return all;
}

Settled Ledger::settled() const {
  const std::lock_guard lock(mutex_);
  return settled_;
}

}  // namespace ferry::verify
