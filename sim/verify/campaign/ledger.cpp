#include "sim/verify/campaign/ledger.h"

#include <algorithm>
#include <utility>

namespace ferry::verify {

Ledger::Ledger(std::uint64_t end, std::uint64_t block_size, std::function<bool()> late)
    : end_(end), block_size_(block_size), late_(std::move(late)) {}

std::optional<Block> Ledger::take() {
  const std::lock_guard lock(mutex_);
  if (next_ >= end_ || !counts(next_) || late_()) return std::nullopt;
  const Block block{next_, next_ + std::min(block_size_, end_ - next_)};
  out_.insert(block.first);
  next_ = block.end;
  return block;
}

void Ledger::give(TriedBlock tried) {
  const std::lock_guard lock(mutex_);
  out_.erase(tried.block.first);
  tried_ += tried.coverage.programs;
  waiting_[tried.block.first] = std::move(tried.coverage);
  const auto& failure = tried.failure;
  if (failure && (!failure_ || failure->number < failure_->number)) {
    failure_ = std::move(tried.failure);
  }
  // A block that is out may hold a failure before these.
  const auto settles = [this](std::uint64_t first) {
    return out_.empty() || first < *out_.begin();
  };
  while (!waiting_.empty() && settles(waiting_.begin()->first)) {
    if (counts(waiting_.begin()->first)) settled_ += waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
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
  Coverage all = settled_;
  for (const auto& [first, coverage] : waiting_) {
    if (counts(first)) all += coverage;
  }
  return all;
}

}  // namespace ferry::verify
