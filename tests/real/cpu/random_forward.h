// What a random forward saves: tensors once or several times, whole or by views, small parts of a
// large one, tensors of another stream's pool, one that is written and saved again, one whose
// storage is exchanged, parameters, and what is not the device's to move.
//
// Around each save short-lived tensors of the same sizes take the blocks that are free, and
// scribble over them; some live on, and are read later.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/real/cpu/draw.h"
#include "tests/real/cpu/judged.h"
#include "tests/real/cpu/strips.h"

namespace ferry::real {

class RandomForward {
 public:
  static constexpr std::int64_t kUsual = 512;      // elements
  static constexpr std::int64_t kMost = 1024;      // that travel at once
  static constexpr std::int64_t kLarge = 1 << 18;  // a storage of which parts travel

  RandomForward(Dice& draw, StripWorld& world, Judged& judged)
      : draw_(draw), world_(world), judged_(judged), parameter_(world.make(kUsual)) {
    parameter_source_.stays = true;
    parameter_strip_ = world_.write(parameter_);
    judged_.exempt(parameter_);
  }

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
        return save_foreign(saves);
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

  // A tensor on the same stream, most often a short-lived one.
  void scribble(std::int64_t elements) {
    const at::Tensor x = world_.make(elements);
    const Strip strip = world_.write(x);
    if (draw_.one_in(4)) hold(x, strip);
  }

  // One of what lives on, or all of it: each on the stream that has it.
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

  // To be read late, on the current stream.
  void hold(const at::Tensor& tensor, const Strip& strip) {
    late_.push_back({tensor, strip, world_.current()});
  }
  // The program's own references, one or all.
  void drop_held(bool all) {
    while (!held_.empty()) {
      held_.pop_back();
      if (!all) break;
    }
  }

 private:
  // What lives on: it escaped its node, or is a neighbour.
  struct Late {
    at::Tensor tensor;
    Strip strip;
    int stream = 0;
  };

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

  // Not the device's to move: a sparse tensor has no bytes of its own, and of a lazily negated one
  // they are not its values.
  void save_foreign(std::vector<Save>& saves) {
    Source from = source(world_.current());
    from.stays = true;
    if (draw_.one_in(2)) {
      from.sparse = true;
      const at::Tensor values = at::ones({1, kUsual}, at::kInt);
      const at::Tensor indices = at::zeros({1, 1}, at::kLong);
      return pack(saves, at::sparse_coo_tensor(indices, values, {1, kUsual}), {}, from);
    }
    const at::Tensor x = world_.make(kUsual);
    const Strip strip = world_.write(x);
    x.unsafeGetTensorImpl()->_set_neg(true);
    pack(saves, x, strip, from);
  }

  void pack(std::vector<Save>& saves, const at::Tensor& tensor, const Strip& strip,
            const Source& from, bool again = false) {
    saves.push_back(judged_.pack(tensor, strip, from, again));
  }
  static Source source(int home) {
    Source fresh;
    fresh.home = home;
    return fresh;
  }

  Dice& draw_;
  StripWorld& world_;
  Judged& judged_;
  at::Tensor parameter_;
  Source parameter_source_;
  Strip parameter_strip_;
  std::vector<at::Tensor> held_;  // what the program still refers to in backward
  std::vector<Late> late_;
};

}  // namespace ferry::real
