// A checkpointed function, drawn, that does in its recompute what it did in forward, or something
// else: whether that is an error, what the error says, and how often what ran.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/skip/tracker.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/drawn_checkpoint.h"
#include "tests/shared/checkpoint/hand.h"
#include "tests/shared/checkpoint/ops_rig.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {
namespace {

using OpsGuard = CheckpointContextGuard<sim::SimAutograd>;

struct Figure {
  std::string name;
  std::int64_t is, must;
};
std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Runs the call, and asks for what it saved.
class RunOfOps {
 public:
  RunOfOps(const DrawnCheckpoint& call, Rules rules)
      : call_(call), expected_(what_comes_of(call)), hand_(rules) {}

  std::string complaint() {
    const SkipTrackerGuard<sim::SimAutograd> skips(hand_.autograd(), skips_);
    if (call_.pops) skips_->save(name_, hand_.input());
    auto group = std::make_shared<ExecGroup>();
    const std::weak_ptr<ExecGroup> alive = group;
    {
      std::optional<ExecGroupGuard<sim::SimAutograd>> in;
      if (call_.where == Where::kGroup) in.emplace(hand_.autograd(), group);
      if (!run()) return complaint_;
      before_ = hand_.generator();
      storages_ = hand_.machine().live_storages();
      ask();
    }
    group.reset();
    if (hand_.machine().live_storages() != storages_) fails("what was recomputed is kept");
    if (!alive.expired()) fails("a call keeps the group of backwards in which it was made");
    if (complaint_.empty()) count();
    return complaint_;
  }

 private:
  void fails(const std::string& words) {
    if (complaint_.empty()) complaint_ = words;
  }

  void pop_skip() {
    if (!call_.pops) return;
    const sim::Tensor popped = current_skip_tracker(hand_.autograd())->load(name_).tensor;
    const sim::Tensor stashed = hand_.input().tensor;
    if (!popped || popped->storage != stashed->storage || popped->version != stashed->version) {
      fails("another skip tensor is popped");
    }
  }
  void run_forward() {
    pop_skip();
    for (const Act& act : call_.forward) {
      const sim::Tensor tensor = hand_.run_op(act.op);
      if (!act.saves) continue;
      auto saved = hand_.save(tensor);
      if (!saved) return fails("what it saves is nobody's");
      const SavedChoice chosen = call_.choice(saved_.size());
      const bool moves = chosen == SavedChoice::kOffload && call_.hooked;
      ++(chosen == SavedChoice::kRecompute ? held_ : moves ? passed_ : kept_);
      made_.push_back(tensor->layout.window->layout.shape);
      saved_.push_back(std::move(saved));
    }
  }
  void run_again() {
    pop_skip();
    for (const Act& act : call_.again) {
      const sim::Tensor tensor = hand_.run_op(act.op);
      if (!act.saves) continue;
      try {
        hand_.save(tensor);
      } catch (const StopRecomputation&) {
        if (call_.manner != Manner::kCatchesStop) throw;
      }
    }
    if (call_.manner == Manner::kRaises) throw std::runtime_error(kOwnError);
  }

  CheckpointContexts contexts() {
    ++contexts_;
    const auto scope = [this](std::int64_t& count) {
      return [this, &count] { return ++count, std::static_pointer_cast<void>(skips_); };
    };
    return {scope(forward_scopes_), scope(again_scopes_)};
  }

  // False: it was refused, rightly or not.
  bool run() {
    CoreCheckpointOptions options = call_.options;
    if (call_.contexts) options.context_fn = [this] { return contexts(); };
    CheckpointContext context = checkpoint_context(hand_.autograd().hooks());
    context.early_stop = call_.early_stop;
    context.debug = call_.debug;
    const OpsGuard guard(hand_.autograd(), context);
    std::optional<HooksGuard<sim::SimAutograd>> hooks;
    if (call_.hooked) hooks.emplace(hand_.autograd(), around_);
    const bool must_refuse = call_.contexts && call_.debugs();
    const std::string text = "debug=True is incompatible with non-default context_fn";
    try {
      hand_.checkpointer().run(
          {hand_.input()}, options, [this](const auto&) { run_again(); },
          [this](const auto&) { run_forward(); });
    } catch (const ValueError& error) {
      if (!must_refuse || error.what() != text) fails(std::string("refused: ") + error.what());
      return false;
    }
    if (must_refuse) fails("debug mode and a context_fn are taken together");
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      if (call_.dropped[i]) saved_[i].reset();
    }
    return !must_refuse;
  }

  // Asks in the place that the call says.
  void ask() {
    if (call_.where != Where::kBackward) return ask_all();
    auto autograd = hand_.autograd();
    const sim::Value leaf = autograd.leaf(hand_.input().tensor, true);
    const auto roots = autograd.node(std::vector<sim::Value>{leaf}, {hand_.input()},
                                     [this](const std::vector<sim::Value>& gradients) {
                                       ask_all();
                                       return gradients;
                                     });
    autograd.backward(roots, std::vector<sim::Value>(1));
  }

  void ask_all() {
    const bool once = call_.where != Where::kOutside && expected_.facts.empty();
    const std::int64_t before = hand_.machine().live_storages();
    std::int64_t left = 0;
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      if (!saved_[i]) continue;
      if (call_.choice(i) != SavedChoice::kRecompute) {
        if (saved_[i]->unpack()->layout.window->layout.shape != made_[i]) fails("kept is another");
        continue;
      }
      if (first && once && i % 3 == 1) {
        drop(i);
        continue;
      }
      if (first && once && i % 3 == 2) {  // it stays as long as its backward, or group
        ++left;
        continue;
      }
      ask_for(i, !first || !once);
      if (!first) first = i;
    }
    if (first && once) ask_twice(*saved_[*first]);
    if (hand_.machine().live_storages() != before + left) fails("what nobody asked for is kept");
  }
  // What one recompute has made for it goes with it.
  void drop(std::size_t place) {
    const std::int64_t before = hand_.machine().live_storages();
    saved_[place].reset();
    if (hand_.machine().live_storages() + 1 != before) fails("what nobody needs any more is kept");
  }
  void ask_twice(Saved<sim::Tensor>& saved) {
    try {
      saved.unpack();
      fails("a tensor is unpacked twice in one backward");
    } catch (const CheckpointError& error) {
      const std::string text = error.what();
      const bool group = text.find("under the ferry::GraphExecGroup") != std::string::npos;
      if (text.find("was already unpacked once.") == std::string::npos ||
          group != (call_.where == Where::kGroup)) {
        fails("of a tensor that is unpacked twice it says: " + text);
      }
    }
  }

  // `again`: the function must run again for it.
  void ask_for(std::size_t number, bool again) {
    if (again) ++recomputes_;
    try {
      const sim::Tensor tensor = saved_[number]->unpack();
      if (!expected_.facts.empty()) fails("no error says " + expected_.facts.front());
      if (call_.options.determinism_check == DeterminismCheck::kDefault &&
          tensor->layout.window->layout.shape != made_[number]) {
        fails("another tensor comes back");
      }
    } catch (const std::exception& error) {
      const std::string text = "\n" + std::string(error.what());
      const bool own = text == "\n" + std::string(kOwnError);
      if (own == (dynamic_cast<const CheckpointError*>(&error) != nullptr)) {
        fails("an error of another kind: " + text);
      }
      if (expected_.facts.empty()) fails("an error where there is none: " + text);
      for (const std::string& fact : expected_.facts) {
        if (text.find(fact) == std::string::npos) fails("not said: " + fact + "\nbut: " + text);
      }
    }
  }

  void expect(const std::vector<Figure>& figures) {
    for (const auto& [name, is, must] : figures) {
      if (is != must) {
        fails(name + " is " + std::to_string(is) + ", not " + std::to_string(must));
      }
    }
  }
  void count() {
    std::int64_t alive = 0;
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      if (saved_[i] && call_.choice(i) == SavedChoice::kRecompute) alive = 1;
    }
    const std::uint64_t random = call_.options.preserve_rng_state
                                     ? 0
                                     : expected_.random * static_cast<std::uint64_t>(recomputes_);
    const CheckpointStatistics counts = hand_.checkpointer().statistics();
    const bool empty = hand_.checkpointer().empty();
    saved_.clear();
    expect({{"segments", counts.segments, 1},
            {"recomputes", counts.recomputes, recomputes_},
            {"stopped_early", counts.stopped_early, expected_.stopped ? recomputes_ : 0},
            {"saved", counts.saved, held_},
            {"kept", counts.kept, kept_},
            {"passed_on", counts.passed_on, passed_},
            {"packs of the hooks around", around_->packs, call_.hooked ? 1 + passed_ : 0},
            {"alive", counts.alive, alive},
            {"empty", empty ? 1 : 0, 1 - alive},
            {"alive at the end", hand_.checkpointer().statistics().alive, 0},
            {"empty at the end", hand_.checkpointer().empty() ? 1 : 0, 1},
            {"numbers drawn", as_signed(hand_.generator() - before_), as_signed(random)},
            {"calls of context_fn", contexts_, call_.contexts ? 1 : 0},
            {"scopes of forward", forward_scopes_, call_.contexts ? 1 : 0},
            {"scopes of recomputes", again_scopes_, call_.contexts ? recomputes_ : 0}});
  }

  const DrawnCheckpoint& call_;
  const Recomputed expected_;
  OpsRig hand_;
  const std::shared_ptr<HandHooks> around_ = std::make_shared<HandHooks>(false);
  const SkipName name_{"skip"};
  const std::shared_ptr<PlainSkips<sim::Value>> skips_ = std::make_shared<PlainSkips<sim::Value>>();
  std::vector<OpsRig::Saved> saved_;
  std::vector<std::vector<std::int64_t>> made_;  // shapes
  std::string complaint_;
  std::uint64_t before_ = 0;
  std::int64_t storages_ = 0, held_ = 0, kept_ = 0, passed_ = 0;
  std::int64_t recomputes_ = 0, contexts_ = 0, forward_scopes_ = 0, again_scopes_ = 0;
};

Objection judge_recompute(std::uint64_t seed, const Rules& rules) {
  choices::Draws draws(seed);
  const DrawnCheckpoint call = draw_checkpoint(draws);
  std::string complaint = RunOfOps(call, rules).complaint();
  return complaint.empty() ? Objection() : complaint;
}

TEST(CheckpointerDrawn, SaysWhatWentWrongAndRunsAsOftenAsItMust) {
  const auto core = [](std::uint64_t seed) { return judge_recompute(seed, {}); };
  EXPECT_EQ(first_objection(core), "");
}

TEST(CheckpointerDrawn, EachRuleOfARecomputeShows) {
  expect_shown(kShownByRecomputes, judge_recompute);
}

}  // namespace
}  // namespace ferry::test
