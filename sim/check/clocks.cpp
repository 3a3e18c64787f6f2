// Implements clocks.h: the actors and their clocks, and the order that each kind of op creates.
#include "sim/check/clocks.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ferry::check {
namespace {

// Limit on the number of actors. Their clocks, one as wide as this number for each, take 1 GiB.
constexpr std::uint32_t kActorsMost = 1u << 14;
constexpr std::size_t kCellsMost = std::size_t{1} << 29;

void require_room(std::size_t cells) {
  if (cells <= kCellsMost) return;
  throw std::length_error(
      "expected fewer events and tokens at a time: their clocks take more than 2 GiB; an event "
      "counts until it is destroyed, or every host thread has waited for what it stands for");
}

}  // namespace

void ClockRows::widen(std::uint32_t width) {
  const std::size_t rows = cells_.size() / width_;
  require_room(rows * width);
  std::vector<std::uint32_t> wide(rows * width, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(cells_.data() + i * width_, width_, wide.data() + i * width);
  }
  cells_ = std::move(wide);
  width_ = width;
}

void ClockRows::resize(std::uint32_t rows) {
  require_room(std::size_t{rows} * width_);
  cells_.resize(std::size_t{rows} * width_, 0);
}

void Snapshots::put(std::uint32_t id, const std::uint32_t* clock) {
  std::uint32_t row = ids_.find(id);
  if (row == DenseIds::kNone) {
    row = static_cast<std::uint32_t>(there_.size());
    ids_.set(id, row);
    rows_.resize(row + 1);
    there_.push_back(0);
  }
  std::copy_n(clock, rows_.width(), rows_.row(row));
  there_[row] = 1;
}

void Snapshots::drop(std::uint32_t id) {
  const std::uint32_t row = ids_.find(id);
  if (row != DenseIds::kNone) there_[row] = 0;
}

Clocks::Clocks() {
  synced_.resize(1);
  certain_.resize(1);
  thread_ids_.set(0, add(0, true));
}

// Adds the default thread, at its first op. If every line of a log names its thread, the default
// thread is never added, and work is settled without it.
void Clocks::begin_default_thread() {
  default_thread_ = true;
  threads_.push_back(Actor{0});
  host_waits(Actor{0}, certain_.row(0));
}

Clocks::Actor Clocks::add(std::uint32_t id, bool is_thread) {
  const auto actor = static_cast<std::uint32_t>(infos_.size());
  if (actor >= kActorsMost) {
    throw std::length_error("expected at most " + std::to_string(kActorsMost) +
                            " streams and host threads at a time: a destroyed stream counts until "
                            "every host thread has waited for its work");
  }
  if (actor >= rows_.width()) {
    for (ClockRows* rows : {&rows_, &synced_, &certain_}) rows->widen(actor * 2);
    for (Snapshots* snapshots : {&events_, &tokens_}) snapshots->widen(actor * 2);
  }
  rows_.resize(actor + 1);
  infos_.emplace_back();
  infos_.back().id = id;
  infos_.back().is_thread = is_thread;
  return static_cast<Actor>(actor);
}

Clocks::Actor Clocks::find(HostThread thread) {
  const auto id = static_cast<std::uint32_t>(thread);
  const std::uint32_t known = thread_ids_.find(id);
  if (known != DenseIds::kNone) return static_cast<Actor>(known);
  const Actor actor = add(id, true);
  thread_ids_.set(id, actor);
  threads_.push_back(actor);
  host_waits(actor, certain_.row(0));
  return actor;
}

Clocks::Actor Clocks::add_stream(StreamId stream) {
  const auto id = static_cast<std::uint32_t>(stream);
  Actor actor = recycle();
  if (actor == kNobody) {
    actor = add(id, false);
  } else {
    infos_[actor].id = id;
  }
  stream_ids_.set(id, actor);
  return actor;
}

// Returns the place (index in the clocks) of a destroyed stream, if every host thread knows that
// the stream's work is done; otherwise kNobody. The place can be reused because all later work is
// ordered after that stream's work anyway. So a program that makes and destroys many streams needs
// few places. Below kFew actors, each new stream gets a new place.
Clocks::Actor Clocks::recycle() {
  constexpr std::size_t kFew = 64;
  constexpr std::size_t kTries = 8;  // looks at the oldest only: many may not be done
  if (infos_.size() < kFew || retired_.empty()) return kNobody;
  settle();
  for (std::size_t i = 0; i < std::min(kTries, retired_.size()); ++i) {
    const Actor actor = retired_[i];
    if (!certain(rows_.row(actor))) continue;
    retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(i));
    if (infos_[actor].kind != StreamKind::kNonblocking) {
      Device& device = devices_[infos_[actor].device];
      std::erase(device.busy, actor);
      if (device.legacy == actor) device.legacy = kNobody;
    }
    const std::uint32_t id = infos_[actor].id;  // by now it may name a redeclared stream
    if (stream_ids_.find(id) == actor) stream_ids_.set(id, DenseIds::kNone);
    const std::uint32_t birth = infos_[actor].birth + 1;
    infos_[actor] = Info{};
    infos_[actor].birth = birth;
    return actor;
  }
  return kNobody;
}

void Clocks::settle() {
  if (threads_.empty()) return;
  std::copy_n(rows_.row(threads_[0]), rows_.width(), certain_.row(0));
  for (const Actor thread : threads_) {
    for (std::uint32_t i = 0; i < rows_.width(); ++i) {
      certain_.row(0)[i] = std::min(certain_.row(0)[i], rows_.row(thread)[i]);
    }
  }
}

bool Clocks::certain(const std::uint32_t* clock) const {
  return std::equal(clock, clock + rows_.width(), certain_.row(0), std::less_equal<>());
}

bool Clocks::settled(EventId event) const {
  const std::uint32_t* clock = events_.find(static_cast<std::uint32_t>(event));
  return clock == nullptr || certain(clock);
}

bool Clocks::settled(HostToken token) const {
  const std::uint32_t* clock = tokens_.find(static_cast<std::uint32_t>(token));
  return clock == nullptr || certain(clock);
}

void Clocks::follow_legacy(Actor actor) {
  Info& info = infos_[actor];
  Device& device = devices_[info.device];
  if (info.kind == StreamKind::kBlocking) {
    if (info.legacy_version != device.version) {
      if (device.legacy != kNobody) join(actor, rows_.row(device.legacy));
      info.legacy_version = device.version;
    }
    if (!info.busy) device.busy.push_back(actor);
    info.busy = true;
    return;
  }
  for (const Actor blocking : device.busy) {
    join(actor, rows_.row(blocking));
    infos_[blocking].busy = false;
  }
  device.busy.clear();
  // The legacy stream of a device may have two ids.
  if (device.legacy != actor && device.legacy != kNobody) join(actor, rows_.row(device.legacy));
  device.legacy = actor;
  device.version++;
}

void Clocks::host_waits(Actor thread, const std::uint32_t* clock) {
  if (clock == nullptr) return;
  join(thread, clock);
  infos_[thread].version = ++versions_;
}

void Clocks::order(const StreamOp& op) {
  const auto event = static_cast<std::uint32_t>(op.event);
  const auto token = static_cast<std::uint32_t>(op.token);
  switch (op.kind) {
    case StreamOpKind::kRecord:
      return events_.put(event, rows_.row(issue(op.stream, op.thread)));
    case StreamOpKind::kWait: {
      const Actor actor = issue(op.stream, op.thread);
      const std::uint32_t* clock = events_.find(event);
      if (clock != nullptr) join(actor, clock);
      return;
    }
    case StreamOpKind::kEventSync:
      return host_waits(thread(op.thread), events_.find(event));
    case StreamOpKind::kStreamSync: {
      const Actor actor = issue(op.stream, op.thread);
      return host_waits(thread(op.thread), rows_.row(actor));
    }
    case StreamOpKind::kDeviceSync:
      return device_sync(op);
    case StreamOpKind::kRelease: {
      const Actor actor = op.in_stream ? issue(op.stream, op.thread) : thread(op.thread);
      return tokens_.put(token, rows_.row(actor));
    }
    case StreamOpKind::kAcquire: {
      const Actor actor = op.in_stream ? issue(op.stream, op.thread) : thread(op.thread);
      const std::uint32_t* clock = tokens_.find(token);
      if (!op.in_stream) return host_waits(actor, clock);
      if (clock != nullptr) join(actor, clock);
      return;
    }
    case StreamOpKind::kStream:
      return declare(op);
    case StreamOpKind::kStreamDestroy:
      return destroy(op.stream);
    case StreamOpKind::kEventDestroy:
      return destroy_event(op.event);
    default:
      return;
  }
}

void Clocks::device_sync(const StreamOp& op) {
  const Actor host = thread(op.thread);
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    if (infos_[i].is_thread || infos_[i].device != op.device) continue;
    join(host, rows_.row(static_cast<Actor>(i)));
  }
  infos_[host].version = ++versions_;
  ClockRows::join(synced_.row(0), rows_.row(host), rows_.width());
}

void Clocks::declare(const StreamOp& op) {
  const std::uint32_t known = stream_ids_.find(static_cast<std::uint32_t>(op.stream));
  const bool fresh = known == DenseIds::kNone || infos_[known].destroyed;
  const Actor actor = fresh ? add_stream(op.stream) : static_cast<Actor>(known);
  if (fresh) join(actor, synced_.row(0));
  Info& info = infos_[actor];
  if (info.declared) return;
  info.declared = true;
  info.kind = op.stream_kind;
  info.device = op.device;
  // Earlier work of the stream counts too. The declaration itself orders nothing.
  if (op.stream_kind == StreamKind::kBlocking) follow_legacy(actor);
  if (op.stream_kind != StreamKind::kLegacy) return;
  Device& device = devices_[op.device];
  if (device.legacy != kNobody) join(actor, rows_.row(device.legacy));
  device.legacy = actor;
  device.version++;
}

void Clocks::destroy(StreamId id) {
  const Actor actor = stream(id);
  if (infos_[actor].destroyed) return;
  infos_[actor].destroyed = true;
  retired_.push_back(actor);
}

}  // namespace ferry::check
