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

// The place where backward was called. LibTorch passes it on to the threads that take part in that
// backward, like its own data.
struct CallOfBackward : c10::DebugInfoBase {
  explicit CallOfBackward(const std::string* at) : place(at) {}
  const std::string* place;  // null: not known
};
// LibTorch leaves this kind to its users.
const auto kCallOfBackward = c10::DebugInfoKind::PRODUCER_INFO;

const std::string* of_call_of_backward() {
  const auto* const call =
      static_cast<CallOfBackward*>(c10::ThreadLocalDebugInfo::get(kCallOfBackward));
  return call != nullptr ? call->place : nullptr;
}

// Maps a node's sequence number to the place where the operator that made the node was called.
class Nodes {
 public:
  // Notes the place of an operator. If it has a node, that node has the last number given out.
  void made(const std::string* place) {
    const std::uint64_t next = at::sequence_number::peek();
    if (next == 0) return;
    const std::lock_guard lock(mutex_);
    nodes_[(next - 1) % kNodes] = {next - 1, place};
  }

  // Returns null if the place is not known.
  const std::string* place_of(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const Made& made = nodes_[number % kNodes];
    return made.number == number ? made.place : nullptr;
  }

 private:
  static constexpr std::size_t kNodes = std::size_t{1} << 18;  // only the latest are kept

  struct Made {
    std::uint64_t number = 0;
    const std::string* place = nullptr;
  };

  std::mutex mutex_;
  std::vector<Made> nodes_ = std::vector<Made>(kNodes);
};

// Never destroyed, because operators run until the process ends.
Nodes& nodes() {
  static auto* const all = new Nodes;
  return *all;
}

thread_local const std::string* latest = nullptr;  // the calling thread's latest place

// The place of the latest collective that began. A process group's own threads do nothing else.
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
