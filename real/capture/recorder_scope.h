// The scope of a recording; ferry::capture runs the step in one. It installs the Recorder's
// observers on this thread, and on the engine's threads for backwards that begin here.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>

#include "real/api/segments.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/torch_autograd.h"
#include "real/capture/recorder.h"

namespace ferry::real::capture {

inline constexpr c10::DispatchKey kRecordKey = kBelowAutograd;

class Recorder::Pair final : public Hooks<at::Tensor> {
 public:
  explicit Pair(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder)) {}
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override;

 private:
  std::shared_ptr<Recorder> recorder_;
};

class Recorder::Scope {
 public:
  // Throws CaptureError if another scope lives.
  explicit Scope(std::shared_ptr<Recorder> recorder);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();

  static Recorder* active();

 private:
  std::shared_ptr<Recorder> recorder_;
  c10::impl::IncludeDispatchKeyGuard key_;
  HooksGuard<TorchAutograd> hooks_;
  ObserveSegments segments_;
  at::CallbackHandle results_ = 0;
  at::CallbackHandle nodes_ = 0;
};

// Copies the storage of the tensor without being recorded.
c10::Storage copied(const at::Tensor& tensor);

}  // namespace ferry::real::capture
