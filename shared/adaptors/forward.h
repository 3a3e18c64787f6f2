// The base of every adaptor: a device that passes each call to another device.
//
// An adaptor shadows the calls that it changes. It is a handle like any device: copies share their
// state. Adaptors can be nested. The adaptors are bent.h, observed.h and real/api/stream_logged.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "shared/seam/device.h"

namespace ferry {

template <Device D>
class Forward {
 public:
  using Stream = typename D::Stream;
  using Event = typename D::Event;
  using Storage = typename D::Storage;
  using WeakStorage = typename D::WeakStorage;
  using HostBuffer = typename D::HostBuffer;
  using Tensor = typename D::Tensor;
  using Layout = typename D::Layout;
  using Version = typename D::Version;
  using Mutex = typename D::Mutex;
  using Metadata = typename D::Metadata;
  struct StreamScope : D::StreamScope {
    StreamScope(Forward device, const Stream& stream) : D::StreamScope(device.upstream_, stream) {}
  };

  explicit Forward(D upstream) : upstream_(std::move(upstream)) {}

  Stream current_stream() { return upstream_.current_stream(); }
  Stream lane(Lane lane) { return upstream_.lane(lane); }
  bool is_host(const Stream& stream) { return upstream_.is_host(stream); }
  Event record(Step step, const Stream& stream) { return upstream_.record(step, stream); }
  void wait(Step step, const Stream& stream, const Event& event) {
    upstream_.wait(step, stream, event);
  }
  Storage allocate(Step step, std::int64_t bytes, const Stream& stream) {
    return upstream_.allocate(step, bytes, stream);
  }
  void record_use(Step step, const Storage& storage, const Stream& stream) {
    upstream_.record_use(step, storage, stream);
  }
  HostBuffer allocate_host(Step step, std::int64_t bytes, HostMemory kind) {
    return upstream_.allocate_host(step, bytes, kind);
  }
  void release_host(Step step, HostBuffer&& host, std::span<const Event> events) noexcept {
    upstream_.release_host(step, std::move(host), events);
  }
  HostUsage host_usage() { return upstream_.host_usage(); }
  void offload(Step step, const Storage& storage, std::int64_t begin, const HostBuffer& host,
               const Stream& stream) {
    upstream_.offload(step, storage, begin, host, stream);
  }
  void reload(Step step, const HostBuffer& host, const Storage& storage, const Stream& stream) {
    upstream_.reload(step, host, storage, stream);
  }

  // These exist only if the device belongs to a pipeline.
  Stream compute_stream() requires PipelineDevice<D> { return upstream_.compute_stream(); }
  Stream transfer_stream(std::uint32_t microbatch) requires PipelineDevice<D> {
    return upstream_.transfer_stream(microbatch);
  }
  Tensor transfer(Step step, const Tensor& tensor, Forward& to,
                  const Stream& stream) requires PipelineDevice<D> {
    return upstream_.transfer(step, tensor, to.upstream_, stream);
  }

  // These exist only if the device can replay (shared/replay/recording.h).
  bool plain(const Tensor& tensor) requires requires(D device) { device.plain(tensor); }
  { return upstream_.plain(tensor); }
  bool dense(const Tensor& tensor) requires requires(D device) { device.dense(tensor); }
  { return upstream_.dense(tensor); }

  Storage storage(const Tensor& tensor) { return upstream_.storage(tensor); }
  std::int64_t bytes(const Storage& storage) { return upstream_.bytes(storage); }
  std::int64_t use_count(const Storage& storage) { return upstream_.use_count(storage); }
  std::optional<Stream> owner(const Storage& storage) { return upstream_.owner(storage); }
  std::uint64_t identity(const Storage& storage) { return upstream_.identity(storage); }
  std::uint64_t address(const Storage& storage) { return upstream_.address(storage); }
  WeakStorage weak(const Storage& storage) { return upstream_.weak(storage); }
  Storage lock(const WeakStorage& storage) { return upstream_.lock(storage); }
  bool exists(const Storage& storage) { return upstream_.exists(storage); }
  bool on_device(const Tensor& tensor) { return upstream_.on_device(tensor); }
  Layout layout(const Tensor& tensor) { return upstream_.layout(tensor); }
  Extent extent(const Layout& layout) { return upstream_.extent(layout); }
  Version version(const Tensor& tensor) { return upstream_.version(tensor); }
  std::uint64_t read(const Version& version) { return upstream_.read(version); }
  std::uint64_t identity(const Version& version) { return upstream_.identity(version); }
  bool unique(const Version& version) { return upstream_.unique(version); }
  Metadata metadata(const Tensor& tensor) { return upstream_.metadata(tensor); }
  std::string describe(const Metadata& metadata) { return upstream_.describe(metadata); }
  Tensor detach(const Tensor& tensor) { return upstream_.detach(tensor); }
  Tensor restore(const Storage& storage, const Layout& layout, std::int64_t begin,
                 const Version& version) {
    return upstream_.restore(storage, layout, begin, version);
  }

 protected:
  D& upstream() { return upstream_; }

 private:
  D upstream_;
};

}  // namespace ferry
