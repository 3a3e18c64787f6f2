// Logs the ops that LibTorch runs in a stream log: a kernel each, with the bytes read and
// written.
//
// Ops are seen one by one below autograd (real/autograd/below_autograd.h), on the thread that makes
// this and on the engine's threads in a backward begun there: forward, recomputes, backward and the
// optimizer's. (A RecordFunction would see an op that is made of others, and these as well.) What
// an op does inside is its own.
//
// The schema states which arguments an op writes; results are new if no argument is on their
// storage. A view touches nothing, and neither does a look at a shape. Bytes are those
// between a tensor's first and last element. A kernel's line follows the op, whose results
// are known then. On a GPU it is the current stream's; a number that is read back waits for
// that stream.
//
// Not seen: tensors that are not on the device (of a training on a GPU, the CPU's) or are no plain
// windows on a storage; what the schema does not say (running statistics that a normalisation
// updates); host code that looks into a tensor.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>

#include "real/api/stream_log.h"

namespace ferry::real {

// One may exist at a time in a process, and none during a capture.
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
