// A hazard is a mistake that a checker reports. All checkers use this one type, and print each
// hazard as one line of text.
//
// A violation of stream safety is two accesses with no order between them. The steps of the two
// accesses tell which step of the core should have ordered them. A training loop repeats its
// mistakes, so the same mistake (kind, names, steps, streams) is kept once, at its first place,
// with a count. Operations are numbered from 0 in the order of the op stream.
//
//   `consume` missing: `reload` #41 (stream 2) → MmBackward0 #43 (stream 0): read after write of
//   4096 bytes at 0x7f0000000000
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/name_ids.h"
#include "formats/stream_op.h"
#include "shared/seam/step.h"

namespace ferry::check {

// Host memory has higher addresses than the memory of every device.
inline constexpr std::uint64_t kHostBase = std::uint64_t{1} << 60;
constexpr bool is_host(std::uint64_t address) { return address >= kHostBase; }

enum class HazardKind : std::uint8_t {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  kReuse,            // the earlier access belongs to an earlier life of the bytes
  kHostRewrite,      // host memory is written while a copy may still read or write it
  kHostFree,         // host memory is freed while a copy may still read or write it
  kBeforeAlloc,      // an op is not ordered after the stream-ordered allocation of its bytes
  kFreeUnderUse,     // a free in a stream is not ordered after the uses of its bytes
  kUseAfterFree,     // an op is issued after the free
  kReplayAfterFree,  // a replay uses bytes that were freed since the graph's capture
  kOverwritten,      // a read of bytes that a replay took for memory of its graph, and wrote
  kOutside,          // an op uses bytes that no allocation of the op stream covers
  kDoubleFree,
  kUnknownFree,     // a free names no allocation of the op stream
  kDoubleAllocate,  // an allocation hands out bytes that are in use
  kDestroyedStream,
  kLeak,
  kValue,     // a wrong value
  kDeadlock,  // no progress is possible
  kLimit,     // a limit on a resource is exceeded
};

inline constexpr std::array<std::string_view, 20> kHazardNames = {
    "read after write",
    "write after read",
    "write after write",
    "reuse",
    "rewrite under a copy",
    "free under a copy",
    "use before the allocation",
    "free under a use",
    "use after free",
    "replay after free",
    "read after a replay overwrote it",
    "use outside an allocation",
    "double free",
    "free of an unknown range",
    "double allocation",
    "use of a destroyed stream",
    "leak",
    "wrong value",
    "deadlock",
    "limit exceeded",
};
static_assert(kHazardNames.size() == static_cast<std::size_t>(HazardKind::kLimit) + 1);
constexpr std::string_view name(HazardKind kind) {
  return kHazardNames[static_cast<std::size_t>(kind)];
}

inline constexpr std::array<std::string_view, 21> kStreamOpNames = {
    "kernel",        "copy",        "record",        "wait",      "event sync", "stream sync",
    "alloc",         "free",        "record use",    "host read", "host write", "memset",
    "host function", "device sync", "release",       "acquire",   "stream",     "stream destroy",
    "event destroy", "host view",   "host view end",
};
static_assert(kStreamOpNames.size() == static_cast<std::size_t>(StreamOpKind::kHostViewEnd) + 1);
constexpr std::string_view name(StreamOpKind kind) {
  return kStreamOpNames[static_cast<std::size_t>(kind)];
}

struct HazardAccess {
  std::uint64_t op = 0;  // number in the op stream
  StreamOpKind kind = StreamOpKind::kKernel;
  StreamId stream{};
  bool by_host = false;  // made by the host, in `thread`; `stream` means nothing
  Step step = Step::kUser;
  std::string name;
  HostThread thread{};
};

struct Hazard {
  HazardKind kind = HazardKind::kReadAfterWrite;
  Step missing = Step::kUser;  // the step that should have ordered the two; kUser: none
  HazardAccess earlier;        // the allocation, for a leak
  HazardAccess later;
  Range range;          // the first run of conflicting bytes, at the first place
  Range buffer;         // the buffer that the later access named, if known
  std::string message;  // one line; if it is empty, to_string makes it
  std::uint64_t count = 1;
};

// True for kinds about two unordered accesses; false for lifetimes, values and limits.
constexpr bool is_race(HazardKind kind) { return kind <= HazardKind::kFreeUnderUse; }

// Returns the step of the core that should have ordered two accesses, as far as their steps tell.
// `same_pool`: the stream of the later access owns the pool that the bytes came from.
constexpr Step missing_step(HazardKind kind, Step earlier, Step later, bool host, bool same_pool) {
  const bool copy = earlier == Step::kOffload || earlier == Step::kReload;
  if (host && kind != HazardKind::kReadAfterWrite) return copy ? Step::kHostReturn : Step::kUser;
  if (host && (later == Step::kBring || later == Step::kReturn)) return Step::kBringAfterReturned;
  if (host) return later == Step::kReload ? Step::kReloadAfterOffload : Step::kOffloaded;
  if (kind == HazardKind::kReuse) {
    if (earlier == Step::kOffload) return Step::kEvict;
    if (earlier == Step::kReload) return Step::kDiscard;
    if (earlier == Step::kReturn) return Step::kLeave;
    if (earlier == Step::kBring) return Step::kUnused;
    if (later == Step::kBring) return same_pool ? Step::kBroughtInUse : Step::kBringAfterVacant;
    if (later != Step::kReload) return Step::kEscaped;
    return same_pool ? Step::kReleaseAfterNode : Step::kReloadAfterReady;
  }
  if (earlier == Step::kReload) return Step::kConsume;
  if (earlier == Step::kBring) return Step::kTakeBrought;
  if (earlier == Step::kReturn) return Step::kTakeReturned;
  if (later == Step::kReturn) return Step::kReturnAfterUpdated;
  if (later == Step::kBring) return Step::kBringAfterVacant;
  if (earlier == Step::kOffload) return Step::kOffloaded;
  if (later == Step::kOffload) return Step::kOffloadAfterProducer;
  if (later == Step::kReload) return Step::kReloadAfterReady;
  return Step::kUser;
}

inline std::string to_string(const HazardAccess& access) {
  std::string text;
  if (access.step != Step::kUser) {
    text.append("`").append(name(access.step)).append("`");
  } else {
    text.append(access.name.empty() ? name(access.kind) : std::string_view(access.name));
  }
  text.append(" #").append(std::to_string(access.op)).append(" (");
  const auto thread = static_cast<std::uint32_t>(access.thread);
  if (access.by_host) {
    return text + (thread == 0 ? "host)" : "host thread " + std::to_string(thread) + ")");
  }
  return text + "stream " + std::to_string(static_cast<std::uint32_t>(access.stream)) + ")";
}

inline std::string to_string(const Range& range) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%llu bytes at 0x%llx",
                static_cast<unsigned long long>(range.bytes),
                static_cast<unsigned long long>(range.address));
  return text.data();
}

inline std::string describe(const Hazard& hazard) {
  const std::string kind(name(hazard.kind));
  const std::string bytes = to_string(hazard.range);
  const std::string later = to_string(hazard.later);
  const std::string pair = to_string(hazard.earlier) + " → " + later;
  switch (hazard.kind) {
    case HazardKind::kUseAfterFree:
    case HazardKind::kReplayAfterFree:
    case HazardKind::kOverwritten:
    case HazardKind::kDoubleFree:
    case HazardKind::kDoubleAllocate:
      return kind + ": " + pair + ": " + bytes;
    case HazardKind::kDestroyedStream:
      return kind + ": " + pair;
    case HazardKind::kLeak:
      return kind + ": " + bytes + " from " + to_string(hazard.earlier);
    default:
      if (!is_race(hazard.kind)) return kind + ": " + later + ": " + bytes;
      const bool ours = hazard.missing != Step::kUser;
      const std::string edge = ours ? "`" + std::string(name(hazard.missing)) + "`" : "an edge";
      return edge + " missing: " + pair + ": " + kind + " of " + bytes;
  }
}

inline std::string to_string(const Hazard& hazard) {
  std::string text = hazard.message.empty() ? describe(hazard) : hazard.message;
  if (hazard.count > 1) text += " (" + std::to_string(hazard.count) + " times)";
  return text;
}

// The hazards of a run in the order in which they were first seen.
class HazardLog {
 public:
  // Keeps at most so many different hazards; further ones are only counted.
  explicit HazardLog(std::size_t most = ~std::size_t{0}) : most_(most) {}

  void report(Hazard hazard) {
    Key key{hazard.kind, place(hazard.earlier), place(hazard.later)};
    const auto seen = index_.find(key);
    if (seen != index_.end()) {
      hazards_[seen->second].count += hazard.count;
      return;
    }
    if (hazards_.size() == most_) {
      left_out_ += hazard.count;
      return;
    }
    index_.emplace(std::move(key), hazards_.size());
    if (hazard.message.empty()) hazard.message = describe(hazard);
    hazards_.push_back(std::move(hazard));
  }
  const std::vector<Hazard>& hazards() const { return hazards_; }
  std::uint64_t left_out() const { return left_out_; }
  // Forgets which hazards were seen on the streams for which gone(id) is true: they no longer
  // exist, and other streams will get their ids.
  template <class Gone>
  void forget_streams(Gone&& gone) {
    std::erase_if(index_, [&](const auto& known) {
      const Key& key = known.first;
      return gone(StreamId{key.earlier.stream}) || gone(StreamId{key.later.stream});
    });
  }

 private:
  struct Place {
    std::string name;
    StreamOpKind kind{};
    Step step{};
    std::uint32_t stream = 0;
    bool by_host = false;
    std::uint32_t thread = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Key {
    HazardKind kind{};
    Place earlier, later;
    auto operator<=>(const Key&) const = default;
  };
  static Place place(const HazardAccess& access) {
    return {access.name,    access.kind,
            access.step,    static_cast<std::uint32_t>(access.stream),
            access.by_host, static_cast<std::uint32_t>(access.thread)};
  }

  std::size_t most_;
  std::vector<Hazard> hazards_;
  std::map<Key, std::size_t> index_;
  std::uint64_t left_out_ = 0;
};

// Numbers for names. The name of an op is valid only while a checker looks at the op. A log may
// have a new name on every line, so unused names are dropped from time to time.
class NameTable {
 public:
  std::uint32_t intern(std::string_view text) { return ids_.intern(text); }
  const std::string& text(std::uint32_t id) const { return ids_.text(id); }

  // True if it is time to drop unused names.
  bool crowded() const { return ids_.size() > limit_; }
  // Calls mark(f), which must call f with every id in use, and drops the other names.
  template <class Mark>
  void sweep(Mark&& mark) {
    std::vector<char> used;
    mark([&](std::uint32_t id) {
      if (id >= used.size()) used.resize(id + std::size_t{1}, 0);
      used[id] = 1;
    });
    std::vector<std::uint32_t> gone;
    ids_.each([&](std::uint32_t id) {
      if (id >= used.size() || used[id] == 0) gone.push_back(id);
    });
    for (const std::uint32_t id : gone) ids_.erase(id);
    limit_ = std::max(kLimit, ids_.size() * 2);
  }

 private:
  static constexpr std::size_t kLimit = 1u << 14;
  NameIds ids_;
  std::size_t limit_ = kLimit;
};

}  // namespace ferry::check
