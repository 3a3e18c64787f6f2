// Liveness: whether somebody may wait for good.
//
// Streams, events and synchronisations alone never do. A wait names a record that was made before
// it, and what was never recorded is no wait: so whatever waits does so for something that was
// issued earlier, and the oldest of all that is not done can go on. What is left are two.
//
// Host functions. CUDA may run them one at a time, in any order that the streams allow. So while
// one waits for a token, no other runs that does not come before it; if the release of the token
// comes after such a one, or after the wait itself, both wait for good. By the clocks of
// happens-before: some host function comes before the release, and not before the wait. (It is
// enough: what keeps a release from being reached is in the end a host function that has not run.)
//
// Resources that a host thread blocks for: blocked_for_good().
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
  // Those of a HappensBefore, which outlives this.
  explicit Liveness(Clocks& clocks, std::size_t hazards_most = ~std::size_t{0})
      : clocks_(clocks), log_(hazards_most) {}

  // Each op: once before happens-before has it, and once after that, with the same number.
  void before(const StreamOp& op);
  void after(const StreamOp& op, std::uint64_t number);
  // The op stream has ended: what waits still is never released.
  void finish();
  const std::vector<Hazard>& hazards() const { return log_.hazards(); }

  // Whoever reads a long log: after the clocks have settled. A token that is waited for stays.
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
  // Host functions that may still matter.
  std::size_t remembers() const { return remembers_; }

 private:
  using Clock = std::vector<std::uint32_t>;
  struct Place {
    HazardAccess access;
    Clock clock;  // what comes before it, whatever the token; of a release, with itself
  };
  void wait(const StreamOp& op, std::uint64_t number);
  void release(const StreamOp& op, std::uint64_t number);
  void judge(const Place& wait, const Place& release);
  Clock clock_of(const StreamOp& op);

  Clocks& clocks_;
  Clock before_;  // of the current op, where it waits in a stream
  HazardLog log_;
  std::vector<std::vector<std::uint32_t>> functions_;    // by actor: host functions' components
  std::size_t remembers_ = 0;                            // of these, in all
  std::map<std::uint32_t, std::vector<Place>> waiting_;  // by token
  std::size_t waits_ = 0;                                // of all tokens
  std::map<std::uint32_t, Place> releases_;              // likewise: the latest
};

// A host thread blocks until a resource has room that nobody but itself can make: what others hold
// of it (copies that still run) has been waited for already.
Hazard blocked_for_good(std::string resource);

}  // namespace ferry::check
