// Random rounds of an offloader on the virtual device: forwards that save and drop tensors, and
// backwards that read them, with the neighbours that a training step has.
//
// A round packs tensors of a few sizes on two streams, and after each pack lets a short-lived
// tensor of the same size reuse what the window let go of. Backward unpacks from the last to the
// first: a node reads what it unpacked; some unpack twice, some run on the other stream, some let
// the tensor live on into a later node. Some saves are never asked for, and some of those outlive
// the backward. After a node, another short-lived tensor scribbles over what was freed. Some rounds
// end with an error in the middle. The same host bytes and blocks serve the next round.
//
// Everything is drawn from the trial's number: sizes, options, and the tempo of each stream. The
// verdict is the first of: a kernel read something wrong, a checker objects, something is left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "tests/real/cuda/labelled.h"
#include "tests/real/cuda/world.h"
#include "tests/real/dice.h"
#include "tests/real/script.h"
#include "tests/real/verdict.h"

namespace ferry::real {

// A mutant has pinned memory alone. It may give a block back before its copy has run: pinned memory
// is the virtual runtime's, which keeps it for that copy, but pageable memory is the heap's, and
// the copy would go over the test's own objects.
inline CoreOptions drawn_options(Dice& draw, bool mutant) {
  CoreOptions options;
  const bool pageable = draw.one_in(8) && !mutant;
  options.host_memory = pageable ? HostMemory::kPageable : HostMemory::kPinned;
  options.copy_streams = draw.one_in(6) ? CopyStreams::kOne : CopyStreams::kTwo;
  options.reload_pool = draw.one_in(2) ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
  options.window_tensors = draw.of({1, 2, 4, kUnlimited});
  options.window_bytes = draw.of({0, 64 << 10, kUnlimited});
  options.prefetch_bytes = draw.of({0, 16 << 10, 1 << 20});
  options.hold_bytes = draw.of({0, 16 << 10, 1 << 20});
  return options;
}

// Upstream: what the core is compiled against, made from a CudaDevice.
template <class D>
class Rounds {
 public:
  using Values = VirtualWorld::Values;

  static constexpr bool kMayBeMutant = !std::is_same_v<D, Labelled<CudaDevice>>;

  template <class Adapt>
  Rounds(std::uint64_t trial, vgpu::Tempo tempo, Rules rules, Adapt adapt)
      : draw_(trial * 2 + 1),
        world_(tempo, trial),
        device_({.index = 0}),
        offloader_(adapt(Labelled<CudaDevice>(device_)), ScriptAutograd(script_),
                   drawn_options(draw_, kMayBeMutant), rules) {}

  std::optional<Verdict> run(int rounds) {
    const std::int64_t before = world_.allocated_bytes();
    for (int i = 0; i < rounds; ++i) round();
    late_.clear();
    world_.finish();
    VirtualWorld::set_current(world_.stream(0));
    device_.trim();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const auto hazards = world_.hazards();
    const std::string words = hazards.empty() ? "no hazard" : hazards.front();
    if (world_.wrong() > 0) return Verdict{"values", "a kernel read wrong values; " + words};
    if (!hazards.empty()) return Verdict{"checker", words};
    if (!offloader_.empty()) return Verdict{"leak", "the core holds something"};
    if (world_.allocated_bytes() != before) return Verdict{"leak", "device memory"};
    const CudaStatistics left = device_.statistics();
    if (left.host_in_use_bytes != 0 || left.lost_bytes != 0) return Verdict{"leak", "host memory"};
    // A mutant keeps events itself: it may need an old one.
    if (left.events_live != 0 && !kMayBeMutant) return Verdict{"leak", "events"};
    return std::nullopt;
  }
  OffloadStatistics statistics() const { return offloader_.statistics(); }

  // From now on an error out of a round is noted, and the next round begins.
  void forgive() { forgives_ = true; }
  const std::vector<std::string>& errors() const { return errors_; }
  void round() {
    std::vector<Save> saves;
    try {
      forward(saves);
      script_.backward([&] { backward(saves); });
      for (const Save& save : kept_) {  // what was brought in vain for them is gone
        VirtualWorld::set_current(world_.stream(save.stream));
        scribble(static_cast<std::int64_t>(save.values.size()));
      }
    } catch (const std::logic_error&) {  // the program's own
    } catch (const std::exception& error) {
      if (!forgives_) throw;
      errors_.emplace_back(error.what());
    }
    VirtualWorld::set_current(world_.stream(0));
    kept_.clear();
    late_.clear();
  }

 private:
  struct Save {
    std::unique_ptr<Saved<at::Tensor>> saved;
    Values values;
    int stream;
  };
  struct Late {  // what escaped its node
    at::Tensor tensor;
    Values values;
    int stream;
  };

  void forward(std::vector<Save>& saves) {
    offloader_.begin_run();
    const std::int64_t packs = 3 + draw_.below(8);
    for (std::int64_t i = 0; i < packs; ++i) pack(saves);
    VirtualWorld::set_current(world_.stream(0));
    if (draw_.one_in(8)) saves.clear();  // no backward
  }

  void pack(std::vector<Save>& saves) {
    const int stream = draw_.one_in(4) ? 1 : 0;
    VirtualWorld::set_current(world_.stream(stream));
    const std::int64_t elements = draw_.of({512, 1024, 1024, 1024, 4096});
    at::Tensor tensor = world_.make({elements});
    const Values values = world_.last_values();
    saves.push_back({offloader_.hooks()->pack(tensor), values, stream});
    if (draw_.one_in(4)) {
      const std::int64_t half = elements / 2;
      const at::Tensor view = tensor.narrow(0, half, half);
      saves.push_back(
          {offloader_.hooks()->pack(view), {values.begin() + half, values.end()}, stream});
    }
    tensor.reset();
    scribble(elements);
  }

  void backward(std::vector<Save>& saves) {
    const bool fails = draw_.one_in(6);
    while (!saves.empty()) {
      Save save = std::move(saves.back());
      saves.pop_back();
      if (draw_.one_in(8)) {  // never asked for
        if (draw_.one_in(2)) kept_.push_back(std::move(save));
        continue;
      }
      const int stream = draw_.one_in(12) ? 1 - save.stream : save.stream;
      follow(stream, save.stream);
      VirtualWorld::set_current(world_.stream(stream));
      script_.node([&] {
        const Rejoin rejoin{*this, save.stream, stream};
        read(save, stream);
        if (fails && saves.size() < 2) throw std::logic_error("the program's own");
      });
      scribble(static_cast<std::int64_t>(save.values.size()));
    }
  }

  // The program's own order, where a tensor is read on another stream than it was made on.
  void follow(int later, int earlier) {
    if (later == earlier) return;
    device_.wait(Step::kUser, world_.stream(later),
                 device_.record(Step::kUser, world_.stream(earlier)));
  }

  struct Rejoin {
    Rounds& rounds;
    int later;
    int earlier;
    ~Rejoin() { rounds.follow(later, earlier); }
  };

  void read(Save& save, int stream) {
    at::Tensor tensor = save.saved->unpack();
    world_.read(tensor, save.values);
    if (draw_.one_in(6)) world_.read(save.saved->unpack(), save.values);
    if (!late_.empty() && late_.back().stream == stream && draw_.one_in(2)) {
      world_.read(late_.back().tensor, late_.back().values);
      late_.pop_back();
    }
    if (stream == save.stream && draw_.one_in(6)) late_.push_back({tensor, save.values, stream});
    if (draw_.one_in(3)) save.saved.reset();
  }

  // A short-lived neighbour of the same size, on the same stream.
  void scribble(std::int64_t elements) { world_.make({elements}); }

  Dice draw_;
  VirtualWorld world_;
  CudaDevice device_;
  Script script_;
  Offloader<D, ScriptAutograd> offloader_;
  std::vector<Save> kept_;
  std::vector<Late> late_;
  bool forgives_ = false;
  std::vector<std::string> errors_;
};

}  // namespace ferry::real
