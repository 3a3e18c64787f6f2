#include "vgpu/runtime/host.h"

namespace ferry::vgpu {

void Host::await(Stream& stream) {
  schedule_.finish(stream);
  time_.host_waits(stream.id, stream.device);
}

void Host::await(const SnapshotRef& snapshot) {
  schedule_.finish(snapshot);
  snapshot->host_waits();
}

Host::Answer Host::ask(Stream& stream) {
  if (time_.answers()) {
    const Answer answer = Snapshot(stream, time_.clock()).host_asks();
    if (answer == Answer::kNotReady) return answer;
    schedule_.finish(stream);
  } else {
    count_question();
    if (is_impatient()) schedule_.finish(stream);
  }
  if (!stream.queue.empty()) return Answer::kNotReady;
  await(stream);
  return Answer::kDone;
}

Host::Answer Host::ask(const SnapshotRef& snapshot) {
  if (time_.answers()) {
    if (snapshot->host_asks() == Answer::kNotReady) return Answer::kNotReady;
    schedule_.finish(snapshot);
  } else {
    count_question();
    if (is_impatient()) schedule_.finish(snapshot);
  }
  if (!snapshot->is_done()) return Answer::kNotReady;
  await(snapshot);
  return Answer::kDone;
}

void Host::count_question() {
  if (schedule_.may_stall()) ++asked_;
}

bool Host::is_impatient() const {
  constexpr std::int64_t kPatience = 1000;
  return schedule_.may_stall() && asked_ % kPatience == 0;
}

void Host::synchronize_device(int device) {
  streams_.for_each_of(device, [this](Stream& stream) { await(stream); });
  streams_.for_each_of(device, [this](Stream& stream) { log_.tell_sync(stream.id); });
}

}  // namespace ferry::vgpu
