// The entry points of CUDA's runtime for streams and events, which PyTorch and Ferry call on the
// virtual GPU.
//
// Each record, wait and synchronisation has its own line in the log. A successful query is logged
// as a synchronisation, because the host has learned as much. An event that one of LibTorch's
// allocators records for a returned block is logged as a use of the block, and not as an event
// (pending_free.h). In a capture, records, waits and host functions become nodes of its graph
// (graphs.h), and calls that would wait for its work fail.
#include <utility>

#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

cudaStream_t handle(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t handle(Event* event) { return reinterpret_cast<cudaEvent_t>(event); }

void tell_event(Runtime& runtime, StreamOpKind kind, const Event& event, StreamId stream = {}) {
  if (event.of_a_block) return;
  StreamOp op;
  op.kind = kind;
  op.stream = stream;
  op.event = event.id;
  runtime.log().tell(op);
}

cudaError_t record(Runtime& runtime, cudaEvent_t event, cudaStream_t stream, const void* caller) {
  Event* const recorded = runtime.events().find(event);
  if (recorded == nullptr) return fail_with(cudaErrorInvalidResourceHandle);
  Stream& on = runtime.streams().use(stream);
  if (on.device != recorded->device) return fail_with(cudaErrorInvalidResourceHandle);
  if (runtime.graphs().of(on) != nullptr) {
    runtime.graphs().record(on, *recorded);
    return cudaSuccess;
  }
  recorded->graph = {};
  Log& log = runtime.log();
  if (thread().learns) log.learn_recorder(caller);
  recorded->of_a_block = log.records_for_block(caller);
  if (recorded->of_a_block) log.add_use(on.id);
  tell_event(runtime, StreamOpKind::kRecord, *recorded, on.id);
  recorded->latest = runtime.queues().record(on);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  VGPU_ENTER();
  const bool blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = handle(runtime.streams().create(thread().device, blocking, priority));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  VGPU_ENTER();
  const bool blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = handle(runtime.streams().create(thread().device, blocking, 0));
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  VGPU_ENTER();
  *stream = handle(runtime.streams().create(thread().device, true, 0));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  VGPU_ENTER();
  Stream& destroyed = runtime.streams().use(stream);
  runtime.schedule().finish(destroyed);
  runtime.streams().destroy(destroyed);
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  VGPU_ENTER();
  *priority = runtime.streams().use(stream).priority;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  VGPU_ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  VGPU_ENTER();
  Stream& queried = runtime.streams().use(stream);
  if (const auto error = runtime.refuse_in_capture(queried); error != cudaSuccess) return error;
  if (runtime.host().ask(queried) == Host::Answer::kNotReady) return fail_with(cudaErrorNotReady);
  runtime.log().tell_sync(queried.id);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  VGPU_ENTER();
  Stream& waited = runtime.streams().use(stream);
  if (const auto error = runtime.refuse_in_capture(waited); error != cudaSuccess) return error;
  runtime.host().await(waited);
  runtime.log().tell_sync(waited.id);
  runtime.pools().release_unused(waited.device);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  VGPU_ENTER();
  Event* const awaited = runtime.events().find(event);
  if (awaited == nullptr) return fail_with(cudaErrorInvalidResourceHandle);
  Stream& waits = runtime.streams().use(stream);
  if (runtime.graphs().of(waits) != nullptr || runtime.graphs().is_captured(*awaited)) {
    const cudaError_t error = runtime.graphs().wait(waits, *awaited);
    return error == cudaSuccess ? error : fail_with(error);
  }
  tell_event(runtime, StreamOpKind::kWait, *awaited, waits.id);
  if (awaited->latest) runtime.queues().wait(waits, awaited->latest);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  VGPU_ENTER();
  Stream& on = runtime.streams().use(stream);
  Work work{.body = [=] { function(data); }};
  if (runtime.graphs().of(on) != nullptr) {
    runtime.graphs().add(on, nullptr, std::move(work), thread().place);
  } else {
    runtime.queues().enqueue(on, std::move(work));
  }
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  VGPU_ENTER();
  *mode = cudaStreamCaptureModeGlobal;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  VGPU_ENTER();
  const bool timed = (flags & cudaEventDisableTiming) == 0;
  *event = handle(runtime.events().create(thread().device, timed));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  VGPU_ENTER();
  *event = handle(runtime.events().create(thread().device, true));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  VGPU_ENTER();
  Event* const destroyed = runtime.events().find(event);
  if (destroyed == nullptr) return fail_with(cudaErrorInvalidResourceHandle);
  runtime.log().destroy_event(destroyed->id);
  runtime.events().destroy(*destroyed);
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  VGPU_ENTER();
  return record(runtime, event, stream, __builtin_return_address(0));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  VGPU_ENTER();
  return record(runtime, event, stream, __builtin_return_address(0));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  VGPU_ENTER();
  Event* const queried = runtime.events().find(event);
  if (queried == nullptr) return fail_with(cudaErrorInvalidResourceHandle);
  if (runtime.graphs().is_captured(*queried)) return fail_with(cudaErrorCapturedEvent);
  if (queried->latest && runtime.host().ask(queried->latest) == Host::Answer::kNotReady) {
    return fail_with(cudaErrorNotReady);
  }
  tell_event(runtime, StreamOpKind::kEventSync, *queried);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  VGPU_ENTER();
  Event* const awaited = runtime.events().find(event);
  if (awaited == nullptr) return fail_with(cudaErrorInvalidResourceHandle);
  if (runtime.graphs().is_captured(*awaited)) return fail_with(cudaErrorCapturedEvent);
  if (awaited->latest) runtime.host().await(awaited->latest);
  tell_event(runtime, StreamOpKind::kEventSync, *awaited);
  runtime.pools().release_unused(awaited->device);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  VGPU_ENTER();
  const Event* const first = runtime.events().find(start);
  const Event* const last = runtime.events().find(end);
  if (first == nullptr || last == nullptr || !first->latest || !last->latest || !first->timed ||
      !last->timed) {
    return fail_with(cudaErrorInvalidResourceHandle);
  }
  if (!first->latest->is_done() || !last->latest->is_done()) return fail_with(cudaErrorNotReady);
  const std::int64_t end_ns = last->latest->run_to_end();
  *milliseconds = static_cast<float>(end_ns - first->latest->run_to_end()) / 1e6f;
  return cudaSuccess;
}

}  // extern "C"

}  // namespace ferry::vgpu
