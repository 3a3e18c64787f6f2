// The events of a pool that replays a trace (snapshot_replay.h). There is no engine: the trace says
// when work was done. A record is done once finish() is called for it. wait() does nothing.
#pragma once

#include <cstdint>
#include <set>

#include "sim/gpu/pool_events.h"

namespace ferry::sim {

class ToldEvents final : public PoolEvents {
 public:
  PoolToken record(StreamId) override { return PoolToken{next_++}; }
  bool done(PoolToken token) override { return done_.contains(token); }
  void wait(PoolToken) override {}
  void drop(PoolToken token) override { done_.erase(token); }
  PoolToken latest() const { return PoolToken{next_ - 1}; }
  void finish(PoolToken token) { done_.insert(token); }

 private:
  std::uint64_t next_ = 1;
  std::set<PoolToken> done_;
};

}  // namespace ferry::sim
