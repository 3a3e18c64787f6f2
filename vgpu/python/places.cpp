#include "vgpu/python/places.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vgpu/python/frames.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

// Travels with a call of backward to the threads that take part in it, as LibTorch's own does.
struct CallOfBackward : c10::DebugInfoBase {
  explicit CallOfBackward(const std::string* at) : place(at) {}
  const std::string* place;  // null: not known
};
// The kind that is LibTorch's users' own.
const auto kCallOfBackward = c10::DebugInfoKind::PRODUCER_INFO;

const std::string* of_call_of_backward() {
  const auto* const call =
      static_cast<CallOfBackward*>(c10::ThreadLocalDebugInfo::get(kCallOfBackward));
  return call != nullptr ? call->place : nullptr;
}

// By a node's sequence number: where the operator that made it was called.
class Nodes {
 public:
  // The operator's node, if it has one, is the last that was counted.
  void made(const std::string* place) {
    const std::uint64_t next = at::sequence_number::peek();
    if (next == 0) return;
    const std::lock_guard lock(mutex_);
    nodes_[(next - 1) % kNodes] = {next - 1, place};
  }

  // Null: not known.
  const std::string* place_of(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const Made& made = nodes_[number % kNodes];
    return made.number == number ? made.place : nullptr;
  }

 private:
  static constexpr std::size_t kNodes = std::size_t{1} << 18;  // the latest

  struct Made {
    std::uint64_t number = 0;
    const std::string* place = nullptr;
  };

  std::mutex mutex_;
  std::vector<Made> nodes_ = std::vector<Made>(kNodes);
};

// Never destroyed: operators run to the end.
Nodes& nodes() {
  static auto* const all = new Nodes;
  return *all;
}

thread_local const std::string* latest = nullptr;  // of what the calling thread did

// Of the latest collective that was begun: a process group's own threads do nothing else.
std::atomic<const std::string*> collective = nullptr;

const std::string* here() {
  const std::string* place = place_of_frames();  // a node in Python has frames of its own
  if (place == nullptr) {
    if (const auto node = torch::autograd::get_current_node()) {
      const std::string* const forward = nodes().place_of(node->sequence_nr());
      if (forward != nullptr) place = keep_text("the backward of " + *forward);
    }
  }
  if (place == nullptr) place = of_call_of_backward();
  if (place == nullptr) place = collective;
  if (place != nullptr) latest = place;
  return place;
}

std::unique_ptr<at::ObserverContext> note_collective(const at::RecordFunction& function) {
  if (std::string_view(function.name()).starts_with("c10d::")) collective = here();
  return nullptr;
}

const char* of_operator() {
  const std::string* const place = here();
  if (place == nullptr) return nullptr;
  if (c10::GradMode::is_enabled()) nodes().made(place);
  return place->c_str();
}

}  // namespace

void find_places() {
  set_place_finder(of_operator);
  at::addGlobalCallback(
      at::RecordFunctionCallback(note_collective).scopes({at::RecordScope::FUNCTION}));
}

const char* place_without_waiting() {
  const std::string* place = place_of_frames_without_waiting();
  if (place != nullptr) latest = place;
  if (place == nullptr) place = latest;
  if (place == nullptr) place = of_call_of_backward();
  if (place == nullptr) place = collective;
  return place != nullptr ? place->c_str() : nullptr;
}

void note_place() { here(); }

void begin_backward() {
  c10::ThreadLocalDebugInfo::_push(kCallOfBackward,
                                   std::make_shared<CallOfBackward>(place_of_frames()));
}

void end_backward() { c10::ThreadLocalDebugInfo::_pop(kCallOfBackward); }

}  // namespace ferry::vgpu
