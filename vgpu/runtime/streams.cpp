#include "vgpu/runtime/streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {

Streams::Streams() {
  for (int device = 0; device < kDevices; ++device) {
    legacy(device).id = StreamId{static_cast<std::uint32_t>(device)};
    legacy(device).device = device;
  }
}

Stream* Streams::create(int device, bool blocking, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->id = StreamId{next_id_++};
  stream->device = device;
  stream->blocking = blocking;
  stream->priority = priority;
  created_.push_back(std::move(stream));
  return created_.back().get();
}

void Streams::destroy(Stream& stream) {
  const auto found = std::find_if(created_.begin(), created_.end(),
                                  [&](const auto& each) { return each.get() == &stream; });
  gone_.push_back(std::move(*found));
  created_.erase(found);
}

Stream& Streams::use(cudaStream_t handle, int device) {
  if (handle == cudaStreamPerThread) {
    Stream*& own = thread().default_streams[static_cast<std::size_t>(device)];
    if (own == nullptr) own = create(device, true, 0);
  }
  return named(handle, device);
}

Stream& Streams::use(cudaStream_t handle) { return use(handle, thread().device); }

Stream& Streams::named(cudaStream_t handle, int device) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy(device);
  if (handle == cudaStreamPerThread) {
    return *thread().default_streams[static_cast<std::size_t>(device)];
  }
  auto* const wanted = reinterpret_cast<Stream*>(handle);
  for (const auto& stream : created_) {
    if (stream.get() == wanted) return *stream;
  }
  std::fprintf(stderr, "virtual GPU: %p is no stream\n", static_cast<void*>(wanted));
  std::abort();
}

bool Streams::is_legacy(const Stream& stream) const {
  return &stream == &legacy_[static_cast<std::size_t>(stream.device)];
}

bool Streams::is_gone(const Stream& stream) const {
  return std::any_of(gone_.begin(), gone_.end(),
                     [&](const auto& each) { return each.get() == &stream; });
}

Stream* Streams::find(StreamId id) {
  Stream* found = nullptr;
  for_each([&](Stream& stream) {
    if (stream.id == id) found = &stream;
  });
  for (const auto& stream : gone_) {
    if (stream->id == id) found = stream.get();
  }
  return found;
}

std::int64_t Streams::queued() const {
  std::size_t queued = 0;
  for (const Stream& stream : legacy_) queued += stream.queue.size();
  for (const auto& stream : created_) queued += stream->queue.size();
  return static_cast<std::int64_t>(queued);
}

}  // namespace ferry::vgpu
