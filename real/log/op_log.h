// Writes the ops that LibTorch runs to a stream log, each as a kernel with the bytes that it reads
// and writes.
//
// Ops are intercepted below autograd (real/autograd/below_autograd.h), on the thread that makes
// this object and on the engine's threads for backwards that begin there: forward, recomputes,
// backward and the optimizer. (A RecordFunction would report a composite op and also the ops inside
// it.) Ops inside an op are not logged.
//
// The schema says which arguments an op writes. A result is new if no argument has its storage. A
// view touches no bytes, nor does reading a shape. The bytes of a tensor are those between its
// first and last element. The line of a kernel comes after the op, when its results are known. On a
// GPU the kernel is on the current stream; reading a number back waits for that stream.
//
// It does not see tensors that are on another device (such as the CPU's in a training on a GPU) or
// that are more than a view of a storage, effects that the schema does not show (running statistics
// of a normalisation), and host code that reads a tensor's bytes.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "real/api/stream_log.h"

namespace ferry::real {

// Only one may exist in a process, and none during a capture.
class OpLog {
 public:
  OpLog(std::shared_ptr<StreamLog> log, c10::Device device);
  OpLog(const OpLog&) = delete;
  OpLog& operator=(const OpLog&) = delete;
  ~OpLog();

  struct Destination {
    std::shared_ptr<StreamLog> log;
    c10::Device device;
  };

 private:
  const Destination destination_;
  c10::impl::IncludeDispatchKeyGuard key_;
};

}  // namespace ferry::real
