#include "verify/trials/saves_world.h"

#include <string>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "verify/oracles/hazards.h"
#include "verify/oracles/leaks.h"

namespace ferry::verify {
namespace {

constexpr sim::Time kKernelNs = 100;

sim::MachineOptions options() {
  sim::MachineOptions options;
  options.host_total_bytes = std::int64_t{1} << 40;  // so large that there is no warning
  options.devices = 2;
  return options;
}

sim::TensorLayout window_of(std::int64_t begin, std::int64_t bytes) {
  Layout layout = contiguous_layout(DType::kU8, {bytes});
  layout.offset = begin;
  const Hull touched = hull(layout);
  return {std::make_shared<const sim::Window>(
              sim::Window{layout, {touched.begin_bytes, touched.end_bytes}}),
          0};
}

}  // namespace

SavesWorld::SavesWorld(StreamOpConsumer& watch) : watch_(watch), machine_(options()) {
  machine_.add_consumer(this);
}

void SavesWorld::operator()(const StreamOp& op) {
  lifetime_(op);
  happens_before_(op);
  values_(op);
  watch_(op);
}

sim::Tensor SavesWorld::make(std::int64_t bytes) {
  sim::Tensor tensor = sim::make_tensor(machine_.allocate(bytes, machine_.current_stream()),
                                        window_of(0, bytes), machine_.new_version());
  fill(tensor);
  return tensor;
}

sim::Tensor SavesWorld::make_elsewhere(std::int64_t bytes) {
  const sim::SimDevice::StreamScope scope(sim::SimDevice(machine_, 1),
                                          machine_.compute_stream(1, 0));
  return make(bytes);
}

sim::Tensor SavesWorld::view(const sim::Tensor& base, std::int64_t begin, std::int64_t bytes) {
  return sim::make_tensor(base->storage, window_of(begin, bytes), base->version);
}

sim::Tensor SavesWorld::alias(const sim::Tensor& base) {
  return sim::make_tensor(base->storage, base->layout, machine_.new_version());
}

void SavesWorld::write(const sim::Tensor& tensor) {
  fill(tensor);
  ++tensor->version->value;
}

void SavesWorld::fill(const sim::Tensor& tensor) {
  const Range range = sim::range_of(tensor);
  if (range.bytes == 0) return;
  tell_pool(tensor);
  machine_.kernel("fill", ++kernels_, {}, {&range, 1}, {kKernelNs, 0});
}

void SavesWorld::read(const sim::Tensor& tensor) {
  const Range range = sim::range_of(tensor);
  if (range.bytes == 0) return;
  tell_pool(tensor);
  machine_.kernel("read", ++kernels_, {&range, 1}, {}, {kKernelNs, 0});
}

void SavesWorld::tell_pool(const sim::Tensor& tensor) {
  const StreamId now = machine_.current_stream();
  if (tensor->storage->block->stream() == now) return;
  machine_.record_use(Step::kUser, tensor->storage, now);
}

std::uint64_t SavesWorld::contents(const sim::Tensor& tensor) const {
  return values_.read(sim::range_of(tensor));
}

void SavesWorld::give_other_memory(sim::StorageImpl& storage) {
  const StreamId now = machine_.current_stream();
  const sim::Storage other = machine_.allocate(storage.bytes, now);
  std::swap(other->block, storage.block);
  std::swap(other->address, storage.address);
  for (const StreamId stream :
       {machine_.lane(Lane::kDeviceToHost), machine_.lane(Lane::kHostToDevice), now}) {
    machine_.record_use(Step::kUser, other, stream);
  }
  const Range range{storage.address, static_cast<std::uint64_t>(storage.bytes)};
  machine_.kernel("fill", ++kernels_, {}, {&range, 1}, {kKernelNs, 0});
}

void SavesWorld::turn_to_other_stream() {
  const StreamId before = machine_.current_stream();
  const StreamId next = machine_.compute_stream(before == machine_.compute_stream(0) ? 1 : 0);
  machine_.wait(Step::kUser, next, machine_.record(Step::kUser, before));
  machine_.set_current_stream(next);
}

std::optional<Verdict> SavesWorld::hazard() const {
  for (const auto* hazards :
       {&lifetime_.hazards(), &happens_before_.hazards(), &machine_.hazards()}) {
    if (auto verdict = judge_hazards(*hazards)) return verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> SavesWorld::leak() const {
  return judge_leaks({.storages = machine_.live_storages(),
                      .events = machine_.live_events(),
                      .host_bytes = machine_.host_pool().stats().in_use_bytes.current});
}

}  // namespace ferry::verify
