// Implements advice.h. The advice depends on the kind of the hazard and on who made the two
// accesses: a step of the core, another program's stream, or a host thread.
#include "sim/check/advice.h"

namespace ferry::check {
namespace {

// Names the calls that would order the earlier access before the later one.
std::string edge(const Hazard& hazard, const AccessNames& names) {
  const HazardAccess &from = hazard.earlier, &to = hazard.later;
  const std::string after = " after " + names.op(from);
  const std::string before = " before " + names.op(to);
  if (from.by_host) {
    return "release a token on " + names.place(from) + after + ", and acquire it" + before +
           (to.by_host ? " on " + names.place(to) : " on the thread that issues it");
  }
  if (to.by_host) {
    return "synchronise " + names.place(to) + " with " + names.place(from) + after + " and" +
           before + " (event_sync, stream_sync)";
  }
  return "record an event on " + names.place(from) + after + ", and wait for it on " +
         names.place(to) + before;
}

}  // namespace

std::string AccessNames::op(const HazardAccess& access) const {
  return std::string("#").append(std::to_string(access.op));
}

std::string AccessNames::place(const HazardAccess& access) const {
  if (!access.by_host) {
    return "stream " + std::to_string(static_cast<std::uint32_t>(access.stream));
  }
  const auto thread = static_cast<std::uint32_t>(access.thread);
  return thread == 0 ? "the host" : "host thread " + std::to_string(thread);
}

std::string advice(const Hazard& hazard, const AccessNames& names) {
  const HazardAccess &from = hazard.earlier, &to = hazard.later;
  const bool of_the_core = from.step != Step::kUser || to.step != Step::kUser;
  if (is_race(hazard.kind) && hazard.missing != Step::kUser && of_the_core) {
    const StepInfo& info = kStepInfo[static_cast<std::size_t>(hazard.missing)];
    return std::string("take the step `").append(info.name).append("`");
  }
  switch (hazard.kind) {
    case HazardKind::kReuse:
      if (from.by_host) return edge(hazard, names);
      return "record_use of the buffer on " + names.place(from) + " before it is freed; or " +
             edge(hazard, names);
    case HazardKind::kHostFree:
      return edge(hazard, names) + "; or record_use of the buffer on " + names.place(from) +
             ", if its pool supports that";
    case HazardKind::kFreeUnderUse:
      if (from.by_host || from.kind == StreamOpKind::kAlloc) return edge(hazard, names);
      return edge(hazard, names) + "; or record_use of the buffer on " + names.place(from) +
             " before it is freed";
    case HazardKind::kUseAfterFree:
      return "free the buffer after " + names.op(to) + ", not on " + names.op(from);
    case HazardKind::kReplayAfterFree:
      return "keep the buffer as long as the graph is replayed, or capture the graph again";
    case HazardKind::kOverwritten:
      return "copy the buffer before the replay, or allocate it outside of the graph's pool";
    case HazardKind::kDoubleFree:
      return "free the buffer once";
    case HazardKind::kUnknownFree:
      return "free the allocation of " + names.op(from) + " with its own address and bytes";
    case HazardKind::kDoubleAllocate:
      return "free what " + names.op(from) + " allocated before " + names.op(to);
    case HazardKind::kOutside:
      return "stay within the bytes that " + names.op(from) + " allocated";
    case HazardKind::kDestroyedStream:
      return "destroy the stream after " + names.op(to);
    case HazardKind::kLeak:
      return "free the buffer";
    case HazardKind::kDeadlock:
      if (from.op == to.op) return "release the token";
      if (to.by_host) return "release the token before waiting for any host function";
      return "let " + names.place(from) + " wait, before " + names.op(from) +
             ", for an event that is recorded after " + names.op(to);
    default:
      return is_race(hazard.kind) ? edge(hazard, names) : std::string();
  }
}

}  // namespace ferry::check
