// The offloaders of one Offload: if its options name a device, only that one's; else one for each
// device with saved tensors, made at the first save there. (Options that need the CPU, such as a
// disk, name it.)
//
// All of them number the packs of a forward together, so that a plan, and the decision log, mean
// the same wherever the tensors lie. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ferry/offload.h"
#include "real/api/backend.h"

namespace ferry::real {

class Backends final : public Hooks<at::Tensor> {
 public:
  // Throws ValueError if an option makes no sense, and c10::Error if the device does not
  // exist.
  Backends(OffloadOptions options, CoreOptions core, SpanObserver observer);

  // Keeps a tensor of a device that no offloader serves.
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

  void exempt(const at::Tensor& tensor);
  void begin_run();
  OffloadStatistics statistics() const;
  bool empty() const;
  void flush();
  // Those that an offloader serves.
  std::vector<c10::Device> devices() const;
  // "cpu to memory, cuda:0 to page-locked memory", and which tensors nobody can offload.
  std::string where() const;

 private:
  struct Entry {
    c10::Device device;
    std::unique_ptr<Backend> backend;
  };
  Entry& make(c10::Device device);
  Backend& of(c10::Device device);

  const OffloadOptions options_;
  const CoreOptions core_;
  const SpanObserver observer_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // at least one, once something was packed
  std::vector<c10::Device> unserved_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> exempt_;
  std::size_t exempt_due_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t packs_ = 0;
};

}  // namespace ferry::real
