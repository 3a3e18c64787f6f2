// Liveness: finds waits that may never end.
//
// Streams, events and synchronisations alone never do. A wait names an earlier record, or none and
// then does nothing. So each waits for work that was issued earlier, and the oldest unfinished work
// can always go on. Two causes are left.
//
// Host functions. CUDA may run them one at a time, in any order that the streams allow. So while
// one waits for a token, no other runs that does not come before it; if the release of the token
// comes after such a one, or after the wait itself, both wait for good. By the clocks of
// happens-before: some host function comes before the release, and not before the wait. (It is
// enough: what keeps a release from being reached is in the end a host function that has not run.)
//
// Resources that a host thread blocks for: blocked_for_good(), misused_lock().
//
// Not modelled: waits of kernels (spinning on memory), locks between host threads that the op
// stream does not name, a token that is released several times: the latest release counts, or the
// first one after the wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/stream_op.h"
#include "sim/check/clocks.h"
#include "sim/check/hazard.h"

namespace ferry::check {

class Liveness {
 public:
  // Uses the clocks of a HappensBefore, which must outlive this.
  explicit Liveness(Clocks& clocks, std::size_t hazards_most = ~std::size_t{0})
      : clocks_(clocks), log_(hazards_most) {}

  // Call both for each op, with the same number: once before happens-before, once after it.
  void before(const StreamOp& op);
  void after(const StreamOp& op, std::uint64_t number);
  // The op stream has ended: tokens still waited for are never released.
  void finish();
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }

  // For readers of a long log, after the clocks have settled: a token that is waited for must stay.
  bool waits_for(HostToken token) const;
  bool knows_release_of(HostToken token) const {
    return releases_.contains(static_cast<std::uint32_t>(token));
  }
  void forget(HostToken token) { releases_.erase(static_cast<std::uint32_t>(token)); }
  void settle();
  HazardLog& log() { return log_; }
  // Calls f for each stream that a later report may name, some more than once.
  template <class F>
  void each_stream(F&& f) const {
    for (const auto& [token, places] : waiting_) {
      for (const Place& place : places) f(place.access.stream);
    }
    for (const auto& [token, place] : releases_) f(place.access.stream);
  }
  // The number of host functions that may still matter.
  std::size_t remembers() const { return remembers_; }

 private:
  using Clock = std::vector<std::uint32_t>;
  struct Place {
    HazardAccess access;
    Clock clock;  // what comes before it, whatever the token; for a release, itself included
  };
  void wait(const StreamOp& op, std::uint64_t number);
  void release(const StreamOp& op, std::uint64_t number);
  void judge(const Place& wait, const Place& release);
  Clock clock_of(const StreamOp& op);

  Clocks& clocks_;
  Clock before_;  // the current op's, if it waits in a stream
  HazardLog log_;
  std::vector<std::vector<std::uint32_t>> functions_;    // by actor: components of host functions
  std::size_t remembers_ = 0;                            // their number, over all actors
  std::map<std::uint32_t, std::vector<Place>> waiting_;  // by token
  std::size_t waits_ = 0;                                // their number, over all tokens
  std::map<std::uint32_t, Place> releases_;              // by token: the latest
};

// A host thread blocks until a resource has room that only the thread itself can make: it has
// already waited for other users of the resource (copies that still run).
Hazard blocked_for_good(std::string resource);

// A lock is used in a way in which threads would wait for one another for good.
Hazard misused_lock(std::string how);

}  // namespace ferry::check
