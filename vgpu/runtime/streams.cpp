// Entry points: streams and events.
#include "vgpu/runtime/runtime.h"

namespace ferry::vgpu {
namespace {

cudaStream_t handle(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t handle(Event* event) { return reinterpret_cast<cudaEvent_t>(event); }

// None where it is no living event: an error of the caller's.
Event* find(cudaEvent_t event) {
  auto* const wanted = reinterpret_cast<Event*>(event);
  return Runtime::get().known(wanted) ? wanted : nullptr;
}

void tell(StreamOpKind kind, const Stream* stream, const Event* event) {
  if (event != nullptr && event->of_a_block) return;
  StreamOp op;
  op.kind = kind;
  if (stream != nullptr) op.stream = stream->id;
  if (event != nullptr) op.event = event->id;
  Runtime::get().tell(op);
}

cudaError_t record(Runtime& runtime, cudaEvent_t event, cudaStream_t stream, const void* caller) {
  Event* const recorded = find(event);
  if (recorded == nullptr) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  Stream& on = runtime.stream(stream);
  if (on.device != recorded->device) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  if (thread().learns) runtime.pending_free.learn(caller);
  recorded->of_a_block = runtime.pending_free.takes(on.id, caller);
  tell(StreamOpKind::kRecord, &on, recorded);
  recorded->latest = runtime.record(on);
  return cudaSuccess;
}

std::int64_t end_ns(const Snapshot& done) {
  return done.clock != nullptr ? done.clock->end_ns(done.mark) : done.done_ns;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  VGPU_ENTER();
  *stream = handle(
      runtime.create_stream(thread().device, (flags & cudaStreamNonBlocking) == 0, priority));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  VGPU_ENTER();
  *stream = handle(runtime.create_stream(thread().device, (flags & cudaStreamNonBlocking) == 0, 0));
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  VGPU_ENTER();
  *stream = handle(runtime.create_stream(thread().device, true, 0));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  VGPU_ENTER();
  runtime.destroy_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  VGPU_ENTER();
  *priority = runtime.stream(stream).priority;
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
  Stream& queried = runtime.stream(stream);
  if (!runtime.is_done(queried)) return runtime.fail_with(cudaErrorNotReady);
  tell(StreamOpKind::kStreamSync, &queried, nullptr);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  VGPU_ENTER();
  Stream& waited = runtime.stream(stream);
  runtime.await(waited);
  tell(StreamOpKind::kStreamSync, &waited, nullptr);
  runtime.release_unused(waited.device);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  VGPU_ENTER();
  Event* const awaited = find(event);
  if (awaited == nullptr) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  Stream& waits = runtime.stream(stream);
  tell(StreamOpKind::kWait, &waits, awaited);
  if (awaited->latest) runtime.wait(waits, awaited->latest);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  VGPU_ENTER();
  runtime.enqueue(runtime.stream(stream), {.body = [=] { function(data); }});
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  VGPU_ENTER();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
  VGPU_ENTER();
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  VGPU_ENTER();
  *mode = cudaStreamCaptureModeGlobal;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  VGPU_ENTER();
  *event = handle(runtime.create_event((flags & cudaEventDisableTiming) == 0));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  VGPU_ENTER();
  *event = handle(runtime.create_event(true));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  VGPU_ENTER();
  Event* const destroyed = find(event);
  if (destroyed == nullptr) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  runtime.destroy_event(destroyed);
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
  Event* const queried = find(event);
  if (queried == nullptr) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  if (queried->latest && !runtime.is_done(queried->latest))
    return runtime.fail_with(cudaErrorNotReady);
  tell(StreamOpKind::kEventSync, nullptr, queried);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  VGPU_ENTER();
  Event* const awaited = find(event);
  if (awaited == nullptr) return runtime.fail_with(cudaErrorInvalidResourceHandle);
  if (awaited->latest) runtime.await(awaited->latest);
  tell(StreamOpKind::kEventSync, nullptr, awaited);
  runtime.release_unused(awaited->device);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  VGPU_ENTER();
  const Event* const first = find(start);
  const Event* const last = find(end);
  if (first == nullptr || last == nullptr || !first->latest || !last->latest || !first->timed ||
      !last->timed) {
    return runtime.fail_with(cudaErrorInvalidResourceHandle);
  }
  if (!first->latest->done || !last->latest->done) return runtime.fail_with(cudaErrorNotReady);
  *milliseconds = static_cast<float>(end_ns(*last->latest) - end_ns(*first->latest)) / 1e6f;
  return cudaSuccess;
}

}  // extern "C"

}  // namespace ferry::vgpu
