// Implements liveness.h: compares the clocks of each wait for a token with those of its release.
#include "sim/check/liveness.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace ferry::check {

namespace {

constexpr std::size_t kWaitsMost = 1u << 16;

bool waits_in_stream(const StreamOp& op) {
  return op.kind == StreamOpKind::kAcquire && op.in_stream;
}

HazardAccess access_of(const StreamOp& op, std::uint64_t number) {
  HazardAccess access;
  access.op = number;
  access.kind = op.kind;
  access.by_host = !op.in_stream;
  if (op.in_stream) access.stream = op.stream;
  access.name = op.name;
  access.thread = op.thread;
  return access;
}

}  // namespace

Liveness::Clock Liveness::clock_of(const StreamOp& op) {
  const Clocks::Actor actor =
      op.in_stream ? clocks_.issue(op.stream, op.thread) : clocks_.thread(op.thread);
  const std::uint32_t* clock = clocks_.clock(actor);
  return {clock, clock + clocks_.width()};
}

// Takes the clock of the wait now, because happens-before will add the work before the release to
// it.
void Liveness::before(const StreamOp& op) {
  if (waits_in_stream(op)) before_ = clock_of(op);
}

void Liveness::after(const StreamOp& op, std::uint64_t number) {
  const bool token = op.kind == StreamOpKind::kAcquire || op.kind == StreamOpKind::kRelease;
  if (op.kind == StreamOpKind::kHostFunc || (token && op.in_stream)) {
    const Clocks::Actor actor = clocks_.stream(op.stream);
    if (functions_.size() <= actor) functions_.resize(actor + std::size_t{1});
    functions_[actor].push_back(clocks_.clock(actor)[actor]);
    ++remembers_;
  }
  if (op.kind == StreamOpKind::kRelease) release(op, number);
  if (waits_in_stream(op)) wait(op, number);
}

void Liveness::wait(const StreamOp& op, std::uint64_t number) {
  Place place{access_of(op, number), std::move(before_)};
  const auto token = static_cast<std::uint32_t>(op.token);
  const auto released = releases_.find(token);
  if (released == releases_.end()) {
    if (++waits_ > kWaitsMost) {
      throw std::length_error("expected at most " + std::to_string(kWaitsMost) +
                              " waits at a time for tokens that nobody has released");
    }
    waiting_[token].push_back(std::move(place));
  } else {
    judge(place, released->second);
  }
}

void Liveness::release(const StreamOp& op, std::uint64_t number) {
  const auto token = static_cast<std::uint32_t>(op.token);
  Place place{access_of(op, number), clock_of(op)};
  const auto waiting = waiting_.find(token);
  if (waiting != waiting_.end()) {
    for (const Place& wait : waiting->second) judge(wait, place);
    waits_ -= waiting->second.size();
    waiting_.erase(waiting);
  }
  releases_[token] = std::move(place);
}

void Liveness::judge(const Place& wait, const Place& release) {
  for (std::size_t actor = 0; actor < functions_.size(); ++actor) {
    const std::vector<std::uint32_t>& of_actor = functions_[actor];
    const std::uint32_t before = actor < wait.clock.size() ? wait.clock[actor] : 0;
    const std::uint32_t until = actor < release.clock.size() ? release.clock[actor] : 0;
    const auto first = std::upper_bound(of_actor.begin(), of_actor.end(), before);
    if (first == of_actor.end() || *first > until) continue;
    Hazard hazard;
    hazard.kind = HazardKind::kDeadlock;
    hazard.earlier = wait.access;
    hazard.later = release.access;
    log_.report(std::move(hazard));
    return;
  }
}

void Liveness::finish() {
  for (const auto& [token, places] : waiting_) {
    for (const Place& wait : places) {
      Hazard hazard;
      hazard.kind = HazardKind::kDeadlock;
      hazard.earlier = hazard.later = wait.access;
      log_.report(std::move(hazard));
    }
  }
  waiting_.clear();
  waits_ = 0;
}

bool Liveness::waits_for(HostToken token) const {
  return waiting_.contains(static_cast<std::uint32_t>(token));
}

// If every thread knows that a function is done, the function comes before every later op.
void Liveness::settle() {
  if (!waiting_.empty()) return;
  for (std::size_t actor = 0; actor < functions_.size(); ++actor) {
    remembers_ -= std::erase_if(functions_[actor], [&](std::uint32_t function) {
      return clocks_.settled(static_cast<Clocks::Actor>(actor), function);
    });
  }
}

Hazard blocked_for_good(std::string resource) {
  Hazard hazard;
  hazard.kind = HazardKind::kDeadlock;
  hazard.message = "the host waits for " + std::move(resource) + " that only it can return";
  return hazard;
}

Hazard misused_lock(std::string how) {
  Hazard hazard;
  hazard.kind = HazardKind::kDeadlock;
  hazard.message = std::move(how);
  return hazard;
}

}  // namespace ferry::check
