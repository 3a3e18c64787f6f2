// A ward: a storage whose bytes live on the host and outlive training steps, such as an optimizer's
// state. It visits the device to be read or updated.
//
// A ward is in one of these places:
//
//     home ── bring ──▶ brought ── take ──▶ taken ── written ──▶ leaving ── leave ──▶ home
//      ▲                   │                  │ ▲                   │
//      └────── unused ─────┘▲                 │ └──── take ─────────┤
//      ▲                    └─────────────────┤ expected soon       │ the copy failed
//      └──────────── given back ──────────────┘                     ▼
//                                       taken ◀────── take ──── kept
//
// The host has the newest bytes, except while the ward is `kept`: then a copy to the host has
// failed, and the storage on the device stays until a later copy succeeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "shared/seam/device.h"
#include "shared/state/takes.h"

namespace ferry {

enum class WardPlace : std::uint8_t { kHome, kBrought, kTaken, kLeaving, kKept };

// What was decided about a ward. The decisions do not depend on timing, so they are equal in all
// worlds.
enum class WardDecisionKind : std::uint8_t {
  kBring,     // brought for the caller that takes it now
  kAhead,     // brought before anybody takes it
  kTake,      // given to the caller
  kReturn,    // its bytes go to the host
  kLeave,     // its storage is dropped, after its return
  kUnused,    // its storage is dropped: nobody took it, or nobody takes it soon
  kGiveBack,  // its storage is dropped: the caller wrote nothing that counts
  kExpected,  // the same, but it is expected soon and stays
};

struct WardDecision {
  WardDecisionKind kind = WardDecisionKind::kBring;
  WardId ward{};
  std::int64_t bytes = 0;
  bool operator==(const WardDecision&) const = default;
};

// A limit that nobody chose is an eighth of all wards' bytes, and at most so many.
inline constexpr std::int64_t kMostWardBytes = std::int64_t{256} << 20;
inline constexpr std::int64_t kWardParts = 8;

// Sizes are in bytes. A ward larger than a limit is alone within it, if the limit is not 0.
struct WardOptions {
  // How much is brought before it is taken, in the expected order. No value: an eighth.
  std::optional<std::int64_t> ahead_bytes = {};
  // How much may still be on the device while its return is in progress. 0 is as 1. No value: an
  // eighth.
  std::optional<std::int64_t> behind_bytes = {};
  HostMemory host_memory = HostMemory::kPinned;
  std::function<void(const WardDecision&)> log = {};  // empty: no log
};

struct WardStatistics {
  std::int64_t wards = 0;
  std::int64_t host_bytes = 0;  // of all wards
  std::int64_t brought_count = 0;
  std::int64_t brought_bytes = 0;
  std::int64_t ahead_count = 0;  // of those, brought before somebody took them
  std::int64_t unused_count = 0;
  std::int64_t returned_count = 0;
  std::int64_t returned_bytes = 0;
  std::int64_t device_bytes = 0;  // on the device now
  std::int64_t device_peak_bytes = 0;
};

template <Device D>
struct Ward {
  std::int64_t bytes = 0;
  WardPlace place = WardPlace::kHome;

  // The bytes on the host.
  typename D::HostBuffer host = {};
  bool is_current = false;          // they are the newest, once `returned` is done
  typename D::Event returned = {};  // the last copy into them
  typename D::Event brought = {};   // the last copy from them
  bool unsure = false;              // a copy may run whose end no event marks

  // The bytes on the device.
  typename D::Storage storage = {};
  std::optional<typename D::Stream> owner = {};  // the stream of its pool; none: unknown
  bool is_there_since_return = false;  // it was taken again while it was copied to the host
  bool was_used = false;               // since it was brought, somebody took it and gave it back
  bool was_elsewhere = false;          // it was used on another stream than its pool's
  std::size_t expected_at = 0;         // the take that it was brought ahead for (takes.h)
};

}  // namespace ferry
