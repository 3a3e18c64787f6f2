// The parts of an offloader on a World, without the core that drives them: a test makes parcels,
// packs them one after another, evicts, reloads, and says when a parcel dies.
//
// The device fails a step once where a test says so (`fails`), and counts the calls that reach the
// machine. A Mutant is a rule that does not hold or a step that is taken wrongly: a test runs once
// as the core is, and once more with a mutant, to show that it would notice.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/offload/context.h"
#include "shared/offload/inbound.h"
#include "shared/offload/outbound.h"
#include "shared/offload/tracker.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry::test {

struct Mutant {
  Rules rules = {};
  std::optional<Mutation> mutation = {};
};
inline Mutant without(Rule rule) { return {Rules::without(rule), {}}; }
inline Mutant dropping(Step step) { return {{}, Mutation{step, Bend::kDrop}}; }

inline constexpr GraphTaskId kTask{7};

class Parts {
 public:
  using Device = Faulty<Bent<Counted<sim::SimDevice>>>;
  using ParcelRef = std::shared_ptr<Parcel<Device>>;
  using TargetRef = std::shared_ptr<Target<Device>>;
  using Tensor = sim::Tensor;

  explicit Parts(const CoreOptions& options = eager_options(), const Mutant& mutant = {})
      : calls(std::make_shared<CallCount>()),
        context(device(mutant), options, mutant.rules),
        outbound(context),
        inbound(context, tracker) {}

  // A parcel of these bytes of the tensor's storage (or of all of it), packed on the stream that
  // computes now, with one save.
  ParcelRef parcel_of(const Tensor& x, std::optional<Extent> extent = {}) {
    const std::uint64_t sequence = sequence_++;
    return std::make_shared<Parcel<Device>>(
        Parcel<Device>{.key = {x->storage->identity, x->version->identity, x->version->value},
                       .run = run,
                       .pack = sequence,
                       .sequence = sequence,
                       .source = x->storage,
                       .version = x->version,
                       .version_at_pack = x->version->value,
                       .extent = extent.value_or(Extent{0, x->storage->bytes}),
                       .packed_on = context.current(),
                       .saves = 1});
  }
  ParcelRef send(const Tensor& x, std::optional<Extent> extent = {}) {
    const ParcelRef parcel = parcel_of(x, extent);
    HostRoom<Device> room(context.device, parcel->extent.bytes(), HostMemory::kPinned);
    outbound.send(parcel, x->storage, room);
    tracker.insert(parcel);
    return parcel;
  }
  // Sends as many new tensors, whose sources leave the device at once: they are on the host alone.
  std::vector<ParcelRef> away(int count) {
    std::vector<ParcelRef> parcels;
    for (int i = 0; i < count; ++i) {
      const Tensor x = world.make(kBytes);
      contents.push_back(world.contents(x));
      parcels.push_back(send(x));
    }
    evict();
    return parcels;
  }
  // What the window no longer covers before the pack of that number.
  void evict_before(std::uint64_t sequence) {
    Bin<Device> bin;
    outbound.evict_old(sequence, bin);
  }
  void evict_for(std::int64_t bytes) {
    Bin<Device> bin;
    outbound.evict_for(bytes, bin);
  }
  // The window no longer covers anything.
  void evict() {
    evict_before(sequence_ - 1 + static_cast<std::uint64_t>(context.options.window_tensors));
  }

  TargetRef bring(const ParcelRef& parcel) {
    Bin<Device> bin;
    return inbound.bring(*parcel, context.current(), bin);
  }
  // The reloaded storage as the tensor that was packed.
  Tensor tensor(const ParcelRef& parcel, const TargetRef& target) {
    const Layout layout = contiguous_layout(DType::kU8, {parcel->extent.bytes()});
    const auto window =
        std::make_shared<const sim::Window>(sim::Window{layout, {0, target->bytes}});
    return sim::make_tensor(target->storage, {window, 0}, parcel->version);
  }
  // What a node is handed that unpacks a save of the parcel. OffloadCore makes the same calls.
  Tensor hand_out(const ParcelRef& parcel, GraphTaskId task, NodeId node) {
    Bin<Device> bin;
    const StreamId consumer = context.current();
    const TargetRef target = inbound.bring(*parcel, consumer, bin);
    const Tensor x = tensor(parcel, target);
    parcel->task = task;
    parcel->count_unpacked(task, 1);
    if (inbound.needs_release()) inbound.use(target, consumer, task, node);
    inbound.settle(parcel, task, bin);
    return x;
  }
  void end_node(GraphTaskId task, NodeId node) {
    Bin<Device> bin;
    inbound.after_node(task, node, bin);
  }
  // A node that unpacks one save, reads it and ends; gives what it read.
  std::uint64_t run_node(const ParcelRef& parcel, GraphTaskId task) {
    const NodeId node{++nodes_};
    Tensor x = hand_out(parcel, task, node);
    world.use(x);
    const std::uint64_t read = world.contents(x);
    x.reset();
    end_node(task, node);
    return read;
  }
  void prefetch(const ParcelRef& from, GraphTaskId task) {
    Bin<Device> bin;
    inbound.prefetch(from->run, from->sequence, context.current(), task, bin);
  }
  void cancel_task(GraphTaskId task) {
    Bin<Device> bin;
    inbound.cancel_task(task, bin);
  }
  void end_task(GraphTaskId task) {
    Bin<Device> bin;
    inbound.after_task(task, bin);
  }

  // The parcel's last save dies.
  void end(ParcelRef& parcel) {
    Bin<Device> bin;
    outbound.forget(*parcel, bin);
    inbound.let_go(*parcel, parcel->task, bin);
    outbound.return_host(*parcel);
    tracker.erase(*parcel);
    parcel.reset();
  }
  void end(std::vector<ParcelRef>& parcels) {
    for (ParcelRef& parcel : parcels) end(parcel);
  }
  void expect_clean() {
    context.device = device({});  // the old one remembers events: of each stream the last
    EXPECT_TRUE(outbound.empty() && inbound.empty() && tracker.empty());
    EXPECT_EQ(context.statistics.forward_stash_bytes, 0);
    EXPECT_EQ(context.statistics.backward_stash_bytes, 0);
    world.expect_clean();
  }

  std::int64_t made(Step step) const { return calls->of(step).calls; }
  std::int64_t live_storages() { return world.machine().live_storages(); }
  std::int64_t host_bytes() { return world.machine().host_pool().stats().in_use_bytes.current; }
  void compute_on(std::uint32_t number) {
    world.machine().set_current_stream(world.stream(number));
  }

  World world;
  std::shared_ptr<CallCount> calls;
  std::optional<Step> fails;            // at its next call, and then no more
  std::vector<std::uint64_t> contents;  // of what went away
  std::uint64_t run = 0;
  Context<Device> context;
  Tracker<Device> tracker;
  Outbound<Device> outbound;
  Inbound<Device> inbound;

 private:
  Device device(const Mutant& mutant) {
    const auto fault = std::make_shared<FaultPoint>([this](Step step) {
      return fails == step && std::exchange(fails, std::nullopt).has_value();
    });
    const Counted<sim::SimDevice> counted(world.device(), calls);
    return {Bent<Counted<sim::SimDevice>>(counted, mutant.mutation), fault};
  }

  std::uint64_t sequence_ = 0;
  std::uint64_t nodes_ = 0;
};

// Which parcels have a target, the first packed first.
using Back = std::vector<bool>;
inline Back back(const std::vector<Parts::ParcelRef>& parcels) {
  Back result;
  for (const Parts::ParcelRef& parcel : parcels) result.push_back(parcel->target != nullptr);
  return result;
}

}  // namespace ferry::test
