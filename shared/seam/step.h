// The steps of the core: every call that orders work or manages a lifetime names its step.
//
// Fault points, reports, the drawing in ARCHITECTURE.md and the mutants use these names. A decision
// to keep a storage alive is not a call, so it is a rule (shared/seam/rules.h). The tests fail if
// there is a step without a mutant that they detect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry {

enum class Step : std::uint8_t {
  kUser,                  // a call of the program, not of the core
  kProduced,              // record: the stream of the producer, when a tensor is packed
  kOffloadAfterProducer,  // wait: the copy to the host waits for kProduced
  kHostAllocate,          // allocates host bytes for the copy
  kOffload,               // copy: device to host
  kOffloaded,             // record: the copy stream, after kOffload
  kEvict,                 // wait: the source's pool, for kOffloaded; then the source is dropped
  kAbandon,               // record_use: a block that is dropped while a copy may still use it
  kReloadAllocate,        // allocates device bytes for the copy back
  kReady,                 // record: the consumer's stream, before a block of its pool is written
  kReloadAfterReady,      // wait: the copy back waits for kReady
  kReloadAfterOffload,    // wait: the copy back waits for kOffloaded
  kReload,                // copy: host to device
  kReloaded,              // record: the copy stream, after kReload
  kConsume,               // wait: the consumer's stream waits for kReloaded
  kEscaped,               // record_use: a target used after its node, or on a second stream
  kNodeDone,              // record: the consumer's stream, after the node
  kReleaseAfterNode,      // wait: the copy stream waits for kNodeDone; then the target is dropped
  kDiscard,               // wait: the pool of an unused target waits for kReloaded
  kHostReturn,            // returns the host bytes, after kOffloaded and kReloaded
  kRecomputed,            // record: the stream of a recompute, if another stream goes on
  kUnpackRecomputed,      // wait: the unpacking stream waits for kRecomputed
  kRecomputedInUse,       // record_use: a recomputed tensor on the unpacking stream
  kSent,                  // record: the stream that made a tensor for another stage
  kReceiveAfterSent,      // wait: the stream of arrival waits for kSent
  kReceive,               // copy: from device to device
  kSendInUse,             // record_use: the source, on the stream of arrival
  kReceived,              // record: the stream of arrival, after kReceive
  kTakeReceived,          // wait: the computing stream waits for kReceived
  kReceivedInUse,         // record_use: the received tensor, on the computing stream
  kBringAllocate,         // allocates device bytes for a ward
  kVacant,                // record: the user's stream, before a block of its pool is written
  kBringAfterVacant,      // wait: the copy to the device waits for kVacant
  kBringAfterReturned,    // wait: the copy to the device waits for kReturned
  kBring,                 // copy: host to device
  kBrought,               // record: the copy stream, after kBring
  kTakeBrought,           // wait: the user's stream waits for kBrought
  kBroughtInUse,          // record_use: a ward on a stream that is not its pool's
  kUpdated,               // record: the user's stream, after it wrote the ward
  kReturnAfterUpdated,    // wait: the copy to the host waits for kUpdated
  kReturn,                // copy: device to host
  kReturned,              // record: the copy stream, after kReturn
  kLeave,                 // wait: the ward's pool, for kReturned; then its storage is dropped
  kTakeReturned,          // wait: the user's stream, for kReturned, if the storage is still there
  kUnused,                // wait: the pool of a ward that nobody took waits for kBrought
};

inline constexpr std::size_t kOffloadSteps = static_cast<std::size_t>(Step::kRecomputed);
inline constexpr std::size_t kCheckpointSteps = static_cast<std::size_t>(Step::kSent);
inline constexpr std::size_t kPipelineSteps = static_cast<std::size_t>(Step::kBringAllocate);
inline constexpr std::size_t kSteps = static_cast<std::size_t>(Step::kUnused) + 1;

// The kind of a step. Each kind has its own mutations.
enum class StepKind : std::uint8_t { kNone, kRecord, kWait, kCopy, kUse, kMemory };

struct StepInfo {
  std::string_view name;
  StepKind kind;
  std::string_view invariant;  // the guarantee that the step serves (its number in ARCHITECTURE.md)
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
    {"bring allocate", StepKind::kMemory, "2: a ward's bytes are a block of a known pool"},
    {"vacant", StepKind::kRecord, "2: the block's earlier users are done with it"},
    {"bring after vacant", StepKind::kWait, "2: the block's earlier users are done with it"},
    {"bring after returned", StepKind::kWait, "3: a ward is brought after its last return"},
    {"bring", StepKind::kCopy, "6: the device holds the ward's values"},
    {"brought", StepKind::kRecord, "3: the user knows when a ward is there"},
    {"take brought", StepKind::kWait, "3: the user follows what was brought"},
    {"brought in use", StepKind::kUse, "2: a ward's block is not reused under another stream"},
    {"updated", StepKind::kRecord, "1: a copy to the host follows the update"},
    {"return after updated", StepKind::kWait, "1: a copy to the host follows the update"},
    {"return", StepKind::kCopy, "6: the host holds the ward's values"},
    {"returned", StepKind::kRecord, "2, 3, 4: what follows a return knows its end"},
    {"leave", StepKind::kWait, "2: a ward's block is not reused while it is copied"},
    {"take returned", StepKind::kWait, "4: a ward is not updated while it is copied"},
    {"unused", StepKind::kWait, "2: a ward's block is not reused while it is written"},
}};

constexpr const StepInfo& info(Step step) { return kStepInfo[static_cast<std::size_t>(step)]; }
constexpr std::string_view name(Step step) { return info(step).name; }

}  // namespace ferry
