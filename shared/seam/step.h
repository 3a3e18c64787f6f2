// The named steps of the core: every ordering or lifetime call names the one it takes.
//
// The fault points, the reports, the drawing in ARCHITECTURE.md and the mutants all speak of these.
// Keeping a storage alive is no call: those decisions are rules (shared/seam/rules.h). A step
// without a killed mutant fails the tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry {

enum class Step : std::uint8_t {
  kUser,                  // the program's own call, not the core's
  kProduced,              // record: the producer's stream, when a tensor is packed
  kOffloadAfterProducer,  // wait: the copy to the host, for kProduced
  kHostAllocate,          // host bytes for the copy
  kOffload,               // copy: device to host
  kOffloaded,             // record: the copy stream, after kOffload
  kEvict,                 // wait: the source's pool, for kOffloaded, before the source is dropped
  kAbandon,               // record_use: a block dropped while a copy may still use it
  kReloadAllocate,        // device bytes for the copy back
  kReady,                 // record: the consumer's stream, before its pool's block is written
  kReloadAfterReady,      // wait: the copy back, for kReady
  kReloadAfterOffload,    // wait: the copy back, for kOffloaded
  kReload,                // copy: host to device
  kReloaded,              // record: the copy stream, after kReload
  kConsume,               // wait: the consumer's stream, for kReloaded
  kEscaped,               // record_use: a target in use beyond what the core can see
  kNodeDone,              // record: the consumer's stream, after the node
  kReleaseAfterNode,      // wait: the copy stream, for kNodeDone, before the target is dropped
  kDiscard,               // wait: the target's pool, for kReloaded, where nobody consumed it
  kHostReturn,            // the host bytes go back, after kOffloaded and kReloaded
  kRecomputed,            // record: the stream of a recompute, where another one goes on
  kUnpackRecomputed,      // wait: the stream that goes on (unpacks), for kRecomputed
  kRecomputedInUse,       // record_use: a recomputed tensor on the unpacking stream
  kSent,                  // record: the stream that made what another stage takes
  kReceiveAfterSent,      // wait: the stream of arrival, for kSent
  kReceive,               // copy: from device to device
  kSendInUse,             // record_use: the source, on the stream of arrival
  kReceived,              // record: the stream of arrival, after kReceive
  kTakeReceived,          // wait: the stream that computes, for kReceived
  kReceivedInUse,         // record_use: what arrived, on the stream that computes
};

inline constexpr std::size_t kOffloadSteps = static_cast<std::size_t>(Step::kRecomputed);
inline constexpr std::size_t kCheckpointSteps = static_cast<std::size_t>(Step::kSent);
inline constexpr std::size_t kSteps = static_cast<std::size_t>(Step::kReceivedInUse) + 1;

// A step's kind: each kind has its own mutations.
enum class StepKind : std::uint8_t { kNone, kRecord, kWait, kCopy, kUse, kMemory };

struct StepInfo {
  std::string_view name;
  StepKind kind;
  std::string_view invariant;  // what fails without the step, in a phrase
};

inline constexpr std::array<StepInfo, kSteps> kStepInfo = {{
    {"user", StepKind::kNone, ""},
    {"produced", StepKind::kRecord, "1: a copy to the host follows the producer"},
    {"offload after producer", StepKind::kWait, "1: a copy to the host follows the producer"},
    {"host allocate", StepKind::kMemory, "4: host bytes are whole and free"},
    {"offload", StepKind::kCopy, "6: the host holds the tensor's values"},
    {"offloaded", StepKind::kRecord, "2, 3, 4: what follows a copy to the host knows its end"},
    {"evict", StepKind::kWait, "2: the source's block is not reused while it is copied"},
    {"abandon", StepKind::kUse, "2: a block dropped early is not reused while it is copied"},
    {"reload allocate", StepKind::kMemory, "2: the target is a block of a known pool"},
    {"ready", StepKind::kRecord, "2: the target's earlier users are done with the block"},
    {"reload after ready", StepKind::kWait, "2: the target's earlier users are done"},
    {"reload after offload", StepKind::kWait, "3: a reload follows its own offload"},
    {"reload", StepKind::kCopy, "6: the target holds the tensor's values"},
    {"reloaded", StepKind::kRecord, "3: the consumer knows the reload's end"},
    {"consume", StepKind::kWait, "3: the consumer follows the reload"},
    {"escaped", StepKind::kUse, "2: a target that outlives its node is not reused under it"},
    {"node done", StepKind::kRecord, "2: the release follows the node"},
    {"release after node", StepKind::kWait, "2: the target's block is not reused under the node"},
    {"discard", StepKind::kWait, "2: a target is not reused while it is written"},
    {"host return", StepKind::kMemory, "4: host bytes are not reused under a copy"},
    {"recomputed", StepKind::kRecord, "5: whoever unpacks follows the recompute"},
    {"unpack recomputed", StepKind::kWait, "5: whoever unpacks follows the recompute"},
    {"recomputed in use", StepKind::kUse, "2: a recomputed tensor is not reused under its user"},
    {"sent", StepKind::kRecord, "14: what arrives on a device follows what made it"},
    {"receive after sent", StepKind::kWait, "14: what arrives on a device follows what made it"},
    {"receive", StepKind::kCopy, "6: the other device holds the tensor's values"},
    {"send in use", StepKind::kUse, "2: a source is not reused while another device copies it"},
    {"received", StepKind::kRecord, "14: a stage follows what arrives for it"},
    {"take received", StepKind::kWait, "14: a stage follows what arrives for it"},
    {"received in use", StepKind::kUse, "2: what arrived is not reused under the stage"},
}};

constexpr const StepInfo& info(Step step) { return kStepInfo[static_cast<std::size_t>(step)]; }
constexpr std::string_view name(Step step) { return info(step).name; }

}  // namespace ferry
