// Random rounds of an offloader on the CPU device, and who says no.
//
// A round is a forward that saves, and a backward that reads, with all that a training step may do
// around them. Forward saves a tensor once or several times, whole or by views, small parts of a
// large one, tensors of another stream's pool, a tensor that is written and saved again, one whose
// storage is exchanged (x.data = y), parameters, sparse tensors. Backward comes down the saves, on
// streams of its choice; it unpacks again, lets tensors live on beyond their node, leaves saves
// unasked for, nests, retains, fails. Between all this short-lived tensors take the blocks that are
// free and scribble over them.
//
// Everything follows from the trial's number: what happens, the options, and the pace of the
// workers, so each schedule is adversarial and no luck. (But one thing: when the bytes of a block
// in use elsewhere come back is the workers' own timing. The core may not care.)
//
// The program is legal: where a stream reads what is of another one's pool, it is ordered after
// that stream, and that stream after it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/offloader.h"
#include "tests/real/cpu/script.h"
#include "tests/real/cpu/strips.h"

namespace ferry::real {

struct Verdict {
  std::string oracle;
  std::string words;
};

// No distribution of the standard library's: those differ from one library to the next.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 bits_;
};

inline std::shared_ptr<Pace> drawn_pace(Draw& draw) {
  const auto seed = static_cast<std::uint64_t>(draw.below(std::int64_t{1} << 40));
  // The lanes and the streams that compute are bits 0, 1, 3 and 4.
  if (draw.one_in(3)) return std::make_shared<RandomPace>(seed);
  return std::make_shared<ChosenPace>(seed & 0b11011U);
}

inline CoreOptions drawn_options(Draw& draw) {
  CoreOptions options;
  options.copy_streams = draw.one_in(6)   ? CopyStreams::kNone
                         : draw.one_in(5) ? CopyStreams::kOne
                                          : CopyStreams::kTwo;
  options.reload_pool = draw.one_in(2) ? ReloadPool::kConsumer : ReloadPool::kCopyStream;
  options.bytes_min = draw.of({0, 1024, 2048});
  options.window_packs = draw.of({1, 2, 4, kUnlimited});
  options.window_bytes = draw.of({0, 4 << 10, kUnlimited});
  options.prefetch_bytes = draw.of({0, 4 << 10, 1 << 20});
  options.hold_bytes = draw.of({0, 4 << 10, kUnlimited});
  if (draw.one_in(5)) {
    for (int i = 0; i < 30; ++i) options.offload.push_back(!draw.one_in(3));
  }
  return options;
}

class Rounds {
 public:
  Rounds(std::uint64_t trial, Rules rules, std::optional<Mutation> mutation)
      : draw_(trial),
        options_(drawn_options(draw_)),
        world_(drawn_pace(draw_)),
        offloader_(Bent<CpuDevice>(world_.device(), mutation), ScriptAutograd(script_), options_,
                   rules) {}

  // The first oracle that says no.
  std::optional<Verdict> run(int rounds) {
    parameter_ = world_.make(kUsual);
    parameter_source_ = source(0);
    parameter_source_.stays = true;
    parameter_strip_ = world_.write(parameter_);
    offloader_.exempt(parameter_);
    try {
      for (int i = 0; i < rounds; ++i) round();
      unasked_.clear();
    } catch (const std::exception& error) {
      object("error", error.what());
    }
    world_.device().finish();
    if (world_.wrong() > 0) return Verdict{"values", "wrong bytes were read"};
    if (objection_) return objection_;
    if (const char* what = left()) return Verdict{"leak", what};
    if (const char* what = beyond_bounds()) return Verdict{"bound", what};
    return std::nullopt;
  }
  OffloadStatistics statistics() const { return offloader_.statistics(); }

 private:
  static constexpr std::int64_t kUsual = 512;      // elements
  static constexpr std::int64_t kMost = 1024;      // that travel at once
  static constexpr std::int64_t kLarge = 1 << 18;  // a storage of which parts travel

  // What the program knows of a storage that it saves.
  struct Source {
    int home = 0;  // the stream that writes it, and whose pool it is of
    std::shared_ptr<int> writes = std::make_shared<int>(0);  // since it was made
    // The task that had one of the saves that share a parcel reloaded.
    std::shared_ptr<GraphTaskId> task = std::make_shared<GraphTaskId>(GraphTaskId::kNone);
    bool stays = false;   // must never be copied
    bool sparse = false;  // and is not looked at
  };
  struct Save {
    std::unique_ptr<Saved<at::Tensor>> saved;
    Strip strip;
    Source source;
    int stream = 0;  // that saved it
    int writes = 0;  // that there had been
    bool moved = false;
    GraphTaskId unpacked_in = GraphTaskId::kNone;
  };
  // What escaped its node.
  struct Late {
    at::Tensor tensor;
    Strip strip;
    int stream = 0;
  };
  struct ProgramError : std::logic_error {
    using std::logic_error::logic_error;
  };

  // While it lives, `later` may use what is of the pool of `home`.
  class Visit {
   public:
    Visit(StripWorld& world, int later, int home) : world_(world), later_(later), home_(home) {
      world_.follow(later_, home_);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() { world_.follow(home_, later_); }

   private:
    StripWorld& world_;
    int later_;
    int home_;
  };

  void round() {
    offloader_.begin_run();
    std::vector<Save> saves;
    for (std::int64_t i = 3 + draw_.below(8); i > 0; --i) save_something(saves);
    try {
      if (draw_.one_in(6)) script_.backward([&] { retained(saves); });
      if (!draw_.one_in(8)) script_.backward([&] { backward(saves); });
    } catch (const ProgramError&) {  // which the program survives
    }
    if (!saves.empty() && draw_.one_in(3)) use(saves.back(), world_.current(), true);  // no task
    saves.clear();
    held_.clear();
    read_late(true);
    scribble(kUsual);
    if (draw_.one_in(2)) unasked_.clear();
    if (draw_.one_in(2)) outlast();
  }

  // --- Forward

  void save_something(std::vector<Save>& saves) {
    world_.set_current(draw_.one_in(4) ? 1 : 0);
    switch (draw_.below(16)) {
      case 0:
        return save_parts(saves);
      case 1:
        return save_rewritten(saves);
      case 2:
        return save_exchanged(saves);
      case 3:
      case 4:
        return save_elsewhere(saves);
      case 5:
        return pack(saves, parameter_, parameter_strip_, parameter_source_);
      case 6:
        return save_sparse(saves);
      default:
        return save_tensor(saves, draw_.of({256, kUsual, kUsual, kUsual, kMost}));
    }
  }

  void save_tensor(std::vector<Save>& saves, std::int64_t elements) {
    at::Tensor x = world_.make(elements);
    const Source from = source(world_.current());
    const Strip strip = world_.write(x);
    pack(saves, x, strip, from);
    if (draw_.one_in(4)) pack(saves, x, strip, from, /*again=*/true);
    if (draw_.one_in(4)) {
      const std::int64_t first = elements / 2;
      const std::int64_t step = draw_.of({1, 2});
      pack(saves, x.slice(0, first, elements, step),
           {strip.number, (elements - first) / step, step, first}, from, /*again=*/true);
    }
    if (draw_.one_in(6)) held_.push_back(std::move(x));
    x.reset();
    scribble(elements);
  }

  // Small parts of a large storage, which travel alone.
  void save_parts(std::vector<Save>& saves) {
    const at::Tensor x = world_.make(kLarge);
    const Source from = source(world_.current());
    for (const std::int64_t first : {draw_.below(4) * kMost, kLarge / 2}) {
      const at::Tensor part = x.narrow(0, first, kUsual);
      Source apart = from;
      apart.task = std::make_shared<GraphTaskId>(GraphTaskId::kNone);
      const Strip strip = world_.write(part);
      pack(saves, part, strip, apart);
      if (draw_.one_in(3)) pack(saves, part, strip, apart, /*again=*/true);
    }
    largest_bytes_ = std::max(largest_bytes_, 4 * kLarge);
  }

  // Written in place after a save: that one must not be unpacked any more, and the next one may.
  void save_rewritten(std::vector<Save>& saves) {
    const at::Tensor x = world_.make(kUsual);
    Source from = source(world_.current());
    pack(saves, x, world_.write(x), from);
    if (draw_.one_in(2)) scribble(kUsual);
    x.unsafeGetTensorImpl()->bump_version();
    ++*from.writes;
    from.task = std::make_shared<GraphTaskId>(GraphTaskId::kNone);
    pack(saves, x, world_.write(x), from);
    if (draw_.one_in(3)) held_.push_back(x);
  }

  // x.data = y: the counter stays, and y's storage may lie where the first one did.
  void save_exchanged(std::vector<Save>& saves) {
    const Source first = source(world_.current());
    Source second = source(world_.current());
    second.writes = first.writes;
    const at::Tensor x = world_.make(kUsual);
    pack(saves, x, world_.write(x), first);
    x.unsafeGetTensorImpl()->shallow_copy_from(at::empty({0}, at::kInt).getIntrusivePtr());
    save_tensor(saves, 256);
    x.unsafeGetTensorImpl()->shallow_copy_from(world_.make(kUsual).getIntrusivePtr());
    pack(saves, x, world_.write(x), second);
  }

  // Of one stream's pool, saved on the other one.
  void save_elsewhere(std::vector<Save>& saves) {
    const Source from = source(world_.current());
    at::Tensor x = world_.make(kUsual);
    const Strip strip = world_.write(x);
    world_.follow(1 - from.home, from.home);
    world_.set_current(1 - from.home);
    pack(saves, x, strip, from);
    x.reset();
    if (draw_.one_in(2)) world_.set_current(from.home);
    save_tensor(saves, kUsual);
  }

  // Not of the device: it has no storage.
  void save_sparse(std::vector<Save>& saves) {
    const at::Tensor x = at::sparse_coo_tensor(at::zeros({1, 1}, at::kLong),
                                               at::ones({1, kUsual}, at::kInt), {1, kUsual});
    Source from = source(world_.current());
    from.stays = from.sparse = true;
    pack(saves, x, {}, from);
  }

  // `again`: its bytes are saved already.
  void pack(std::vector<Save>& saves, const at::Tensor& tensor, const Strip& strip,
            const Source& from, bool again = false) {
    const OffloadStatistics before = offloader_.statistics();
    auto saved = offloader_.hooks()->pack(tensor);
    const OffloadStatistics now = offloader_.statistics();
    const bool copied = now.offloaded_count > before.offloaded_count;
    if (copied && from.stays) object("moves", "what should stay was copied");
    if (copied && again) object("moves", "the same bytes were copied twice");
    saves.push_back(
        {std::move(saved), strip, from, world_.current(), *from.writes, now.kept == before.kept});
  }

  // --- Backward

  // All of them, and all stay.
  void retained(std::vector<Save>& saves) {
    for (std::size_t i = saves.size(); i-- > 0;) {
      node(saves[i], /*keep=*/true, [] {});
      if (draw_.one_in(3)) scribble(kUsual);
    }
  }

  void backward(std::vector<Save>& saves) {
    const bool fails = draw_.one_in(6);
    while (!saves.empty()) {
      Save save = std::move(saves.back());
      saves.pop_back();
      if (draw_.one_in(8)) {
        if (draw_.one_in(2)) unasked_.push_back(std::move(save));
        continue;
      }
      node(save, /*keep=*/false, [&] {
        if (draw_.one_in(10)) nested(saves);
        if (fails && saves.size() < 2) throw ProgramError("the program's own");
      });
      if (!held_.empty() && draw_.one_in(3)) held_.pop_back();
      save.saved.reset();
      scribble(std::max<std::int64_t>(save.strip.elements, 1));
    }
  }

  // A backward in a backward: of saves of its own, or of one that was packed around it.
  void nested(std::vector<Save>& outer) {
    const int stream = world_.current();
    deepest_ = std::max(deepest_, ++depth_);
    std::vector<Save> saves;
    if (outer.empty() || draw_.one_in(2)) {
      for (int i = 0; i < 2; ++i) save_tensor(saves, kUsual);
    } else {
      saves.push_back(std::move(outer.back()));
      outer.pop_back();
    }
    script_.backward([&] { backward(saves); });
    --depth_;
    world_.set_current(stream);
  }

  template <class Rest>
  void node(Save& save, bool keep, Rest rest) {
    const int stream = draw_.one_in(10) ? 1 - save.stream : save.stream;
    world_.set_current(stream);
    script_.node([&] {
      use(save, stream, keep);
      rest();
    });
  }

  void use(Save& save, int stream, bool keep) {
    const Visit visit(world_, stream, save.source.home);
    const std::optional<at::Tensor> tensor = unpack(save);
    if (!tensor) return;
    world_.read(*tensor, save.strip);
    if (draw_.one_in(6)) {
      if (const auto same = unpack(save)) world_.read(*same, save.strip);
    }
    if (draw_.one_in(2)) read_late(false);
    if (stream == save.source.home && draw_.one_in(6)) {
      late_.push_back({*tensor, save.strip, stream});
    }
    if (!keep && draw_.one_in(3)) save.saved.reset();
  }

  // None where it holds no strip, or none any more.
  std::optional<at::Tensor> unpack(Save& save) {
    const OffloadStatistics before = offloader_.statistics();
    const bool rewritten = save.writes != *save.source.writes;
    std::optional<at::Tensor> tensor;
    try {
      tensor = save.saved->unpack();
    } catch (const ModifiedInPlace&) {
      if (!rewritten) throw;
      return std::nullopt;
    }
    if (rewritten) object("error", "what was written since its save was unpacked");
    if (save.source.sparse && !tensor->is_sparse()) object("values", "a sparse tensor changed");
    if (rewritten || save.source.sparse) return std::nullopt;
    judge_hold(save, before);
    return tensor;
  }

  // What a task reloaded serves the other saves that it unpacks.
  void judge_hold(Save& save, const OffloadStatistics& before) {
    const OffloadStatistics now = offloader_.statistics();
    if (now.stash_hits > before.stash_hits) return;
    const GraphTaskId task = ScriptAutograd(script_).graph_task();
    const GraphTaskId latest = std::exchange(*save.source.task, task);
    const GraphTaskId mine = std::exchange(save.unpacked_in, task);
    if (!save.moved || task == GraphTaskId::kNone || latest != task || mine == task) return;
    if (options_.hold_bytes == kUnlimited && now.target_hits == before.target_hits) {
      object("moves", "a storage was reloaded twice that could have been held");
    }
  }

  // One of them, or all: on the stream that has each.
  void read_late(bool all) {
    const int stream = world_.current();
    while (!late_.empty() && (all || late_.back().stream == stream)) {
      world_.set_current(late_.back().stream);
      world_.read(late_.back().tensor, late_.back().strip);
      late_.pop_back();
      if (!all) break;
    }
    world_.set_current(stream);
  }

  // --- The neighbours

  // A short-lived tensor on the same stream.
  void scribble(std::int64_t elements) { world_.write(world_.make(elements)); }

  // Tensors that take the blocks of what came for nothing, and are read after whatever still runs.
  void outlast() {
    world_.set_current(static_cast<int>(draw_.below(2)));
    std::vector<std::pair<at::Tensor, Strip>> tensors;
    for (int i = 0; i < 6; ++i) {
      const at::Tensor x = world_.make(kUsual);
      tensors.emplace_back(x, world_.write(x));
    }
    for (int i = 0; i < 3; ++i) {
      const std::int64_t which = draw_.below(4);
      world_.reach(which < 2 ? world_.stream(static_cast<int>(which))
                             : world_.device().lane(static_cast<Lane>(which - 2)));
    }
    for (const auto& [tensor, strip] : tensors) world_.read(tensor, strip);
  }

  static Source source(int home) {
    Source fresh;
    fresh.home = home;
    return fresh;
  }

  // --- The oracles

  void object(const char* oracle, const std::string& words) {
    if (!objection_) objection_ = Verdict{oracle, words};
  }

  const char* left() {
    const CpuDeviceUsage usage = world_.device().usage();
    if (!offloader_.empty()) return "the core holds something";
    if (usage.pool_bytes != 4 * kUsual) return "device memory";  // but for the parameter
    if (usage.host_bytes != 0) return "host memory";
    if (usage.deferred_blocks != 0) return "a deferred block";
    if (usage.tasks != 0) return "a task";
    return offloader_.statistics().quarantined != 0 ? "quarantined blocks" : nullptr;
  }

  const char* beyond_bounds() const {
    const OffloadStatistics counts = offloader_.statistics();
    if (counts.forward_stash_peak_bytes > std::max(options_.window_bytes, largest_bytes_)) {
      return "the window holds more bytes than it may";
    }
    if (options_.window_packs != kUnlimited &&
        counts.forward_stash_peak_bytes > options_.window_packs * largest_bytes_) {
      return "the window holds more packs than it may";
    }
    // Beyond what is prefetched and held: what is at hand, and in the copy stream's pool that of
    // each task's open node and of the one before, twice where a save was unpacked twice.
    const std::int64_t at_hand =
        options_.reload_pool == ReloadPool::kConsumer ? 2 : 4 * (deepest_ + 1);
    if (options_.hold_bytes != kUnlimited &&
        counts.backward_stash_peak_bytes >
            options_.prefetch_bytes + options_.hold_bytes + at_hand * 4 * kMost) {
      return "more is prefetched or held than may be";
    }
    return nullptr;
  }

  Draw draw_;
  CoreOptions options_;
  StripWorld world_;
  Script script_;
  Offloader<Bent<CpuDevice>, ScriptAutograd> offloader_;
  at::Tensor parameter_;
  Source parameter_source_;
  Strip parameter_strip_;
  std::vector<at::Tensor> held_;
  std::vector<Save> unasked_;
  std::vector<Late> late_;
  std::int64_t largest_bytes_ = 4 * kMost;
  std::int64_t depth_ = 0;
  std::int64_t deepest_ = 0;
  std::optional<Verdict> objection_;
};

}  // namespace ferry::real
