// Liveness: finds waits that may never end.
//
// Streams, events and synchronisations alone cannot cause one. A wait names an earlier record, or
// none, and then it does nothing. So each wait is for work that was issued earlier, and the oldest
// unfinished work can always go on. Two other causes remain.
//
// Host functions. CUDA may run them one at a time, in any order that the streams allow. While one
// of them waits for a token, only functions that come before it can run. So if the release of the
// token comes after another function, or after the wait itself, both may wait for ever. The test
// uses the clocks of happens-before: it is a hazard if some host function comes before the release,
// but not before the wait. (This test is enough: if a release is never reached, the reason is in
// the end a host function that has not run.)
//
// Resources that a host thread blocks for. The simulated machine notices these itself, and makes
// the hazards with blocked_for_good() and misused_lock().
//
// Not modelled: kernels that wait (by spinning on memory), locks between host threads that the op
// stream does not name, and several releases of one token: only the latest release counts, or the
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

  // Call both for each op: before() before happens-before gets the op, after() when it has it.
  // `number` is the op's number in the log. after() throws std::length_error if more than 65,536
  // waits for tokens are open.
  void before(const StreamOp& op);
  void after(const StreamOp& op, std::uint64_t number);
  // Call this at the end of the op stream: tokens that are still waited for are never released.
  void finish();
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }

  // The next calls are for readers of long logs, which forget what is settled. Do not forget a
  // token while waits_for(token) is true.
  bool waits_for(HostToken token) const;
  bool knows_release_of(HostToken token) const {
    return releases_.contains(static_cast<std::uint32_t>(token));
  }
  void forget(HostToken token) { releases_.erase(static_cast<std::uint32_t>(token)); }
  // Forgets host functions that come before every later op, if no wait is open.
  void settle();
  HazardLog& log() { return log_; }
  // Calls f for each stream that a later report may name, for some of them more than once.
  template <class F>
  void each_stream(F&& f) const {
    for (const auto& [token, places] : waiting_) {
      for (const Place& place : places) f(place.access.stream);
    }
    for (const auto& [token, place] : releases_) f(place.access.stream);
  }
  // The number of host functions that are remembered.
  std::size_t remembers() const { return remembers_; }

 private:
  using Clock = std::vector<std::uint32_t>;
  struct Place {
    HazardAccess access;
    Clock clock;  // ops before it, not counting its token; for a release, itself too
  };
  void wait(const StreamOp& op, std::uint64_t number);
  void release(const StreamOp& op, std::uint64_t number);
  void judge(const Place& wait, const Place& release);
  Clock clock_of(const StreamOp& op);

  Clocks& clocks_;
  Clock before_;  // of the current op, if it waits in a stream
  HazardLog log_;
  std::vector<std::vector<std::uint32_t>> functions_;    // by actor: components of host functions
  std::size_t remembers_ = 0;                            // their number, over all actors
  std::map<std::uint32_t, std::vector<Place>> waiting_;  // by token
  std::size_t waits_ = 0;                                // their number, over all tokens
  std::map<std::uint32_t, Place> releases_;              // by token: the latest
};

// Returns the deadlock of a host thread that blocks until a resource has room. Only the thread
// itself can make room: it has already waited for the other users of the resource (copies that
// run).
Hazard blocked_for_good(std::string resource);

// Returns the deadlock of a lock that is used so that threads would wait for each other for ever.
// `how` is the message.
Hazard misused_lock(std::string how);

}  // namespace ferry::check
