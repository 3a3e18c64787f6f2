// Random rounds of an offloader on the CPU device, with all that a training step may do.
//
// A round is a forward that saves (tests/real/cpu/random_forward.h) and a backward that reads: down
// the saves, each node on a stream of its choice. It unpacks again, lets tensors live on beyond
// their node, leaves saves unasked for, nests, retains, fails. Between the nodes short-lived
// tensors take the blocks that are free and scribble over them.
//
// Everything follows from the trial's number: what happens, the options, and the pace of the
// workers, so each schedule is adversarial and no luck. (But for one thing: when a block comes back
// that was in use elsewhere is the workers' own timing. The core may not care.)
//
// The program is legal: where a stream reads what is of another one's pool, it is ordered after
// that stream, and that stream after it.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/real/cpu/draw.h"
#include "tests/real/cpu/judged.h"
#include "tests/real/cpu/random_forward.h"
#include "tests/real/cpu/strips.h"

namespace ferry::real {

class Rounds {
 public:
  Rounds(std::uint64_t trial, Rules rules, std::optional<Mutation> mutation)
      : draw_(trial),
        options_(drawn_options(draw_)),
        world_(drawn_pace(draw_)),
        judged_(world_, options_, rules, mutation),
        forward_(draw_, world_, judged_) {}

  // The first oracle that says no.
  std::optional<Verdict> run(int rounds) {
    try {
      for (int i = 0; i < rounds; ++i) round();
      forward_.read_late(/*all=*/true);
      unasked_.clear();
    } catch (const std::exception& error) {
      judged_.object("error", error.what());
    }
    world_.device().finish();
    return judged_.verdict(4 * RandomForward::kUsual);  // the parameter
  }
  OffloadStatistics statistics() const { return judged_.statistics(); }

 private:
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
    judged_.begin_run();
    depth_ = 0;  // an error may have left it
    std::vector<Save> saves;
    for (std::int64_t i = 3 + draw_.below(8); i > 0; --i) forward_.save_something(saves);
    try {
      if (draw_.one_in(4)) {
        judged_.script().backward([&] { retained(saves); });
        if (draw_.one_in(2)) outlast();
      }
      if (!draw_.one_in(8)) judged_.script().backward([&] { backward(saves); });
    } catch (const ProgramError&) {  // which the program survives
    }
    if (!saves.empty() && draw_.one_in(3)) use(saves.back(), world_.current(), true);  // no task
    saves.clear();
    forward_.drop_held(/*all=*/true);
    forward_.read_late(/*all=*/true);
    if (draw_.one_in(2)) outlast();
    forward_.scribble(RandomForward::kUsual);
    if (draw_.one_in(2)) unasked_.clear();
  }

  // Most of them, and all stay.
  void retained(std::vector<Save>& saves) {
    for (std::size_t i = saves.size(); i-- > 0;) {
      if (draw_.one_in(4)) continue;
      node(saves[i], /*keep=*/true, [] {});
      if (draw_.one_in(3)) forward_.scribble(RandomForward::kUsual);
    }
  }

  void backward(std::vector<Save>& saves) {
    const bool fails = draw_.one_in(6);
    while (!saves.empty()) {
      Save save = std::move(saves.back());
      saves.pop_back();
      if (draw_.one_in(6)) {
        if (draw_.one_in(2)) unasked_.push_back(std::move(save));
        continue;
      }
      node(save, /*keep=*/false, [&] {
        if (draw_.one_in(10)) nested(saves);
        if (fails && saves.size() < 2) throw ProgramError("the program's own");
      });
      if (draw_.one_in(3)) forward_.drop_held(/*all=*/false);
      save.saved.reset();
      forward_.scribble(std::max<std::int64_t>(save.strip.elements, 1));
    }
  }

  // A backward in a backward: of saves of its own, or of one that was packed around it.
  void nested(std::vector<Save>& outer) {
    const int stream = world_.current();
    judged_.nested(++depth_);
    std::vector<Save> saves;
    if (outer.empty() || draw_.one_in(2)) {
      for (int i = 0; i < 2; ++i) forward_.save_tensor(saves, RandomForward::kUsual);
    } else {
      saves.push_back(std::move(outer.back()));
      outer.pop_back();
    }
    judged_.script().backward([&] { backward(saves); });
    --depth_;
    world_.set_current(stream);
  }

  template <class Rest>
  void node(Save& save, bool keep, Rest rest) {
    const int stream = draw_.one_in(10) ? 1 - save.stream : save.stream;
    world_.set_current(stream);
    judged_.script().node([&] {
      use(save, stream, keep);
      rest();
    });
  }

  void use(Save& save, int stream, bool keep) {
    const Visit visit(world_, stream, save.source.home);
    const std::optional<at::Tensor> tensor = judged_.unpack(save);
    if (!tensor) return;
    world_.read(*tensor, save.strip);
    if (draw_.one_in(6)) {
      if (const auto same = judged_.unpack(save)) world_.read(*same, save.strip);
    }
    if (draw_.one_in(2)) forward_.read_late(/*all=*/false);
    if (stream == save.source.home && draw_.one_in(6)) forward_.hold(*tensor, save.strip);
    if (!keep && draw_.one_in(3)) save.saved.reset();
  }

  // Tensors that take the blocks of what came for nothing: written, and read after the reloads.
  void outlast() {
    world_.set_current(draw_.one_in(4) ? 1 : 0);
    std::vector<std::pair<at::Tensor, Strip>> tensors;
    for (int i = 0; i < 8; ++i) {
      const at::Tensor x = world_.make(i < 6 ? RandomForward::kUsual : RandomForward::kMost);
      tensors.emplace_back(x, world_.write(x));
    }
    world_.reach(world_.stream(world_.current()));
    world_.reach(world_.device().lane(draw_.one_in(4) ? Lane::kDeviceToHost : Lane::kHostToDevice));
    for (const auto& [tensor, strip] : tensors) world_.read(tensor, strip);
  }

  Dice draw_;
  const CoreOptions options_;
  StripWorld world_;
  Judged judged_;
  RandomForward forward_;
  std::vector<Save> unasked_;
  std::int64_t depth_ = 0;
};

}  // namespace ferry::real
