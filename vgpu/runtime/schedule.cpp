#include "vgpu/runtime/schedule.h"

#include <array>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace ferry::vgpu {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

void Schedule::set_tempo(Tempo tempo, std::uint64_t seed) {
  tempo_ = tempo;
  seed_ = seed;
  draws_ = 0;
  ++tempos_;
}

void Schedule::set_tempo(Stream& stream, Tempo tempo) {
  stream.tempo_of = tempos_;
  stream.tempo = tempo;
}

void Schedule::choose_tempo(Stream& stream) {
  if (stream.tempo_of == tempos_) return;
  stream.tempo_of = tempos_;
  stream.tempo = tempo_;
  if (is_apart()) {
    const bool is_main = streams_.is_legacy(stream);
    stream.tempo = is_main == (tempo_ == Tempo::kMainFirst) ? Tempo::kEager : Tempo::kLazy;
  }
  if (tempo_ != Tempo::kMixed) return;
  constexpr std::array<Tempo, 3> kTempos = {Tempo::kEager, Tempo::kLazy, Tempo::kRandom};
  stream.tempo = kTempos[draw(kTempos.size())];
}

std::uint64_t Schedule::draw(std::uint64_t below) { return mix(seed_ ^ mix(++draws_)) % below; }

void Schedule::push(Stream& stream, Work work) {
  if (work.sleep_us > 0) ++sleepers_;
  stream.queue.push_back(std::move(work));
}

void Schedule::host_calls() {
  ++entries_;
  if (sleepers_ > 0) run_eager();
  run_random();
}

void Schedule::begin_sleep(Work& work) const {
  if (work.wakes_at < 0) work.wakes_at = entries_ + work.sleep_us;
}

void Schedule::end_sleep(const Work& work) {
  --sleepers_;
  now_ns_ += 1000 * work.sleep_us;
}

void Schedule::run_body(const Work& work) {
  try {
    work.body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "virtual GPU: a kernel failed: %s\n", error.what());
    faults_.break_device(cudaErrorAssert);
  }
}

Schedule::Ran Schedule::run_one(Stream& stream, bool awaited) {
  if (stream.queue.empty()) return Ran::kNothing;
  Work& next = stream.queue.front();
  if (next.wait_for && !next.wait_for->is_done()) return Ran::kNothing;
  if (next.sleep_us > 0) {
    begin_sleep(next);
    if (!awaited && is_asleep(next)) return Ran::kNothing;
    end_sleep(next);
  }
  const Work work = std::move(next);
  stream.queue.pop_front();
  now_ns_ += 1000;
  if (work.body) run_body(work);
  if (work.fulfil) work.fulfil->complete(now_ns_);
  return Ran::kOne;
}

void Schedule::run_eager() {
  for (bool moved = true; moved;) {
    moved = false;
    streams_.for_each([&](Stream& stream) {
      while (stream.tempo == Tempo::kEager && run_one(stream, false) == Ran::kOne) moved = true;
    });
  }
}

void Schedule::run_random() {
  if (tempo_ == Tempo::kEager || tempo_ == Tempo::kLazy) return;
  std::vector<Stream*> candidates;
  streams_.for_each([&](Stream& stream) {
    if (stream.tempo == Tempo::kRandom && !stream.queue.empty()) candidates.push_back(&stream);
  });
  if (candidates.empty()) return;
  for (std::uint64_t runs = draw(4); runs > 0; --runs) {
    run_one(*candidates[draw(candidates.size())], false);
  }
  run_eager();
}

void Schedule::finish(SnapshotRef snapshot) {
  while (!snapshot->is_done()) {
    Stream& stream = snapshot->stream();
    if (run_one(stream, true) == Ran::kNothing) finish(stream.queue.front().wait_for);
    if (is_apart()) run_eager();  // the others do not wait while this one is drained
  }
}

void Schedule::finish(Stream& stream) {
  while (!stream.queue.empty()) {
    if (run_one(stream, true) == Ran::kNothing) finish(stream.queue.front().wait_for);
    if (is_apart()) run_eager();  // the others do not wait while this one is drained
  }
}

void Schedule::finish_device(int device) {
  streams_.for_each_of(device, [this](Stream& stream) { finish(stream); });
}

void Schedule::finish_everything() {
  for (int device = 0; device < kDevices; ++device) finish_device(device);
}

}  // namespace ferry::vgpu
