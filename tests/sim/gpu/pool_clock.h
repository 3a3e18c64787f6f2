// A device for the tests of the pools: a record is done when the test says so.
#pragma once

#include <map>
#include <set>

#include "sim/gpu/pool_events.h"

namespace ferry::sim {

class PoolClock final : public PoolEvents {
 public:
  PoolToken record(StreamId stream) override {
    const PoolToken token{next_++};
    live_[token] = stream;
    return token;
  }
  bool done(PoolToken token) override { return done_.contains(token); }
  void wait(PoolToken token) override {
    done_.insert(token);
    ++waits;
  }
  void drop(PoolToken token) override { dropped_twice |= live_.erase(token) != 1; }

  void finish(StreamId stream) {
    for (const auto& [token, of] : live_) {
      if (of == stream) done_.insert(token);
    }
  }
  void finish(PoolToken token) { done_.insert(token); }
  std::size_t live() const { return live_.size(); }

  int waits = 0;
  bool dropped_twice = false;

 private:
  std::uint64_t next_ = 1;
  std::map<PoolToken, StreamId> live_;
  std::set<PoolToken> done_;
};

}  // namespace ferry::sim
