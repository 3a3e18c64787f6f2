// Scripts for what one selective checkpoint keeps: ops run with all policies, under hooks that move
// what they are given, decline it, or fail to bring it back; and recomputes ask for the outputs.
// What comes back, what is refused and what is alive must be as the policies say.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shared/checkpoint/hooks.h"
#include "shared/checkpoint/selective.h"
#include "shared/seam/checkpoint_context.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/hand_world.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {

// A tensor without a machine: what it is on, by number, and its version.
struct CacheTensorImpl {
  std::shared_ptr<const int> on;
  std::shared_ptr<std::uint64_t> version;
};
using CacheTensor = std::shared_ptr<CacheTensorImpl>;

}  // namespace ferry::test

template <>
struct ferry::Exceptions<ferry::test::CacheTensor> : ferry::Exceptions<void> {};

namespace ferry::test {
namespace {

using choices::Draws;

struct CacheDevice {
  using Tensor = CacheTensor;
  using Version = std::shared_ptr<std::uint64_t>;
  using Mutex = std::mutex;
  static Version version(const Tensor& tensor) { return tensor->version; }
  static std::uint64_t read(const Version& version) { return *version; }
  static Tensor alias(const Tensor& tensor) { return std::make_shared<CacheTensorImpl>(*tensor); }
};
using HandCache = SelectiveCache<CacheDevice, int>;

constexpr const char* kRestoreFails = "what was moved does not come back";

// Moves what it is given, or declines it.
class CacheHooks final : public Hooks<CacheTensor> {
 public:
  std::unique_ptr<Saved<CacheTensor>> pack(const CacheTensor& tensor) override {
    ++packs;
    if (declines) return nullptr;
    return std::make_unique<Moved>(*this, tensor);
  }
  bool declines = false;
  bool fails = false;
  int packs = 0;

 private:
  struct Moved final : Saved<CacheTensor> {
    Moved(CacheHooks& of, const CacheTensor& tensor)
        : hooks(of), number(*tensor->on), version(tensor->version) {}
    CacheTensor unpack() override {
      if (hooks.fails) throw std::runtime_error(kRestoreFails);
      return std::make_shared<CacheTensorImpl>(
          CacheTensorImpl{std::make_shared<const int>(number), version});
    }
    CacheHooks& hooks;
    const int number;
    const std::shared_ptr<std::uint64_t> version;
  };
};

// It would make again what it is given: nothing is passed on to it.
class NeverAsked final : public CheckpointPair<CacheTensor> {
 public:
  std::unique_ptr<Saved<CacheTensor>> pack(const CacheTensor&) override {
    was_asked = true;
    return nullptr;
  }
  bool was_asked = false;
};

class CacheScript {
 public:
  CacheScript(std::uint64_t number, const Rules& rules, int steps) : draws_(number), steps_(steps) {
    has_hooks_ = !draws_.one_in(4);
    recomputing_ = draws_.one_in(4);
    allows_ = draws_.one_in(3);
    hooks_->declines = draws_.one_in(5);
    HookStack<CacheTensor> stack;
    if (has_hooks_) push(stack, hooks_);
    if (draws_.one_in(2)) push(stack, never_);
    auto context = std::make_shared<CheckpointContext>();
    context->recomputing = recomputing_;
    context->group = std::make_shared<ExecGroup>();
    const std::weak_ptr<ExecGroup> group = context->group;
    stack.checkpoint = std::move(context);
    cache_ = std::make_shared<HandCache>(CacheDevice(), stack, allows_, rules);
    stack = {};
    expect(group.expired(), "leak", "a selective checkpoint keeps a group alive");
  }

  Objection run() {
    for (int ops = draws_.in(1, 8); ops > 0; --ops) run_op();
    for (; steps_ > 0 && !wrong_; --steps_) step();
    recompute_.reset();
    expect(!never_->was_asked, "moves", "what would make it again is passed a kept output");
    expect(hooks_->packs == moved_ + declined_, "count",
           "the hooks around a selective checkpoint are given more or fewer outputs");
    return wrong_;
  }

 private:
  enum class State : std::uint8_t { kRuns, kStored, kTaken };
  struct Output {
    CacheTensor tensor;  // forward's
    int number = 0;
    std::uint64_t version = 0;
    bool moved = false;
  };
  struct Call {
    State state = State::kRuns;
    std::vector<Output> outputs;
    int other = 0;
  };

  template <class Pair>
  static void push(HookStack<CacheTensor>& stack, const std::shared_ptr<Pair>& pair) {
    stack.top = std::make_shared<const HookFrame<CacheTensor>>(
        HookFrame<CacheTensor>{pair, std::move(stack.top)});
  }
  std::string draw_name() { return "op" + std::to_string(draws_.in(0, 3)); }

  // In forward.
  void run_op() {
    const std::string name = draw_name();
    const int policy = draws_.in(0, 6);
    const bool offloads = policy / 2 == 2;
    const bool given = offloads && has_hooks_ && !recomputing_;
    Call call;
    HandCache::Outputs outputs;
    for (int count = draws_.in(1, 3); count > 0; --count) {
      Output output;
      output.number = ++numbers_;
      output.tensor = std::make_shared<CacheTensorImpl>(CacheTensorImpl{
          std::make_shared<const int>(output.number), std::make_shared<std::uint64_t>(0)});
      output.moved = given && !hooks_->declines;
      if (given) ++(output.moved ? moved_ : declined_);
      outputs.emplace_back(output.tensor);
      call.outputs.push_back(std::move(output));
    }
    call.other = ++numbers_;
    outputs.emplace_back(call.other);
    call.state = policy / 2 == 1 ? State::kRuns : State::kStored;
    expect(cache_->calls(name) == calls_[name].size(), "count",
           "a selective checkpoint counts other calls");
    cache_->ran(name, static_cast<CheckpointPolicy>(policy), outputs);
    calls_[name].push_back(std::move(call));
  }

  void step() {
    const int what = draws_.in(0, 12);
    if (what == 0 || !recompute_) {
      recompute_ = std::make_unique<SelectiveRecompute<CacheDevice, int>>(cache_);
      next_.clear();
    }
    if (what == 1) {
      write();
    } else {
      hooks_->fails = what == 2;
      ask(what == 3 ? "never run" : draw_name());
    }
    judge_alive();
  }
  void write() {
    auto& calls = calls_[draw_name()];
    if (calls.empty()) return;
    Call& call = calls[static_cast<std::size_t>(draws_.in(0, static_cast<int>(calls.size())))];
    ++*call.outputs.front().tensor->version;
  }

  // A recompute comes to the op.
  void ask(const std::string& name) {
    const std::size_t index = next_[name]++;
    const auto known = calls_.find(name);
    const bool ran = known != calls_.end() && !known->second.empty();
    Call* const call = ran && index < known->second.size() ? &known->second[index] : nullptr;
    const auto policy = static_cast<CheckpointPolicy>(draws_.in(0, 6));
    const std::string must = call || keeps(policy) || keeps_some(name)
                                 ? refusal(name, ran ? std::optional(index) : std::nullopt, call)
                                 : "";
    std::string is;
    std::optional<HandCache::Outputs> got;
    try {
      got = recompute_->next(name, [&] { return policy; });
    } catch (const std::exception& error) {
      is = error.what();
    }
    if (is != must) {
      expect(
          false, "error",
          "a recompute that asks for an op's outputs is told \"" + is + "\", not \"" + must + "\"");
    }
    expect(call || !got, "count", "a call that forward did not have is answered");
    if (!is.empty() || !must.empty() || !call) return;
    expect(got.has_value() == (call->state == State::kStored), "count",
           "an op runs again that was kept, or the other way round");
    if (!got || call->state != State::kStored) return;
    call->state = State::kTaken;
    judge_outputs(*call, *got);
  }
  bool keeps_some(const std::string& name) const {
    const auto known = calls_.find(name);
    if (known == calls_.end()) return false;
    return std::any_of(known->second.begin(), known->second.end(),
                       [](const Call& call) { return call.state != State::kRuns; });
  }
  std::string refusal(const std::string& name, std::optional<std::size_t> index,
                      const Call* call) const {
    if (!call) {
      return name + (index ? " invocation index " + std::to_string(*index) : "") +
             " encountered during backward but not found in storage. This can happen if the "
             "operations in the checkpointed region are nondeterministic or depend on global state "
             "that changed between forward and backward.";
    }
    if (call->state == State::kRuns) return "";
    if (call->state == State::kTaken) {
      return "Trying to backward an extra time. You are only allowed to backward once on any "
             "region computed under selective activation checkpoint.";
    }
    for (const Output& output : call->outputs) {
      if (!allows_ && *output.tensor->version != output.version) {
        return "Tensor cached during selective activation checkpoint has been mutated";
      }
    }
    return hooks_->fails && call->outputs.front().moved ? kRestoreFails : "";
  }
  void judge_outputs(const Call& call, const HandCache::Outputs& got) {
    bool right = got.size() == call.outputs.size() + 1 && std::get<int>(got.back()) == call.other;
    for (std::size_t i = 0; i < call.outputs.size() && right; ++i) {
      const CacheTensor& tensor = std::get<CacheTensor>(got[i]);
      right = *tensor->on == call.outputs[i].number && tensor != call.outputs[i].tensor &&
              (tensor->on == call.outputs[i].tensor->on) != call.outputs[i].moved;
    }
    expect(right, "value", "a selective checkpoint gives other outputs");
  }

  // Forward's own reference, and the checkpoint's.
  void judge_alive() {
    for (const auto& [name, calls] : calls_) {
      for (const Call& call : calls) {
        for (const Output& output : call.outputs) {
          const long must = call.state == State::kStored && !output.moved ? 2 : 1;
          expect(output.tensor->on.use_count() == must, "leak",
                 "a selective checkpoint keeps what it does not need, or not what it does");
        }
      }
    }
  }

  void expect(bool right, const std::string& kind, const std::string& words) {
    if (!right && !wrong_) wrong_ = kind + ": " + words;
  }

  Draws draws_;
  int steps_;
  int numbers_ = 0;
  int moved_ = 0;
  int declined_ = 0;
  bool has_hooks_ = false;
  bool recomputing_ = false;
  bool allows_ = false;
  std::shared_ptr<CacheHooks> hooks_ = std::make_shared<CacheHooks>();
  std::shared_ptr<NeverAsked> never_ = std::make_shared<NeverAsked>();
  std::shared_ptr<HandCache> cache_;
  std::unique_ptr<SelectiveRecompute<CacheDevice, int>> recompute_;
  std::map<std::string, std::vector<Call>> calls_;  // by op
  std::map<std::string, std::size_t> next_;         // in the recompute
  Objection wrong_;
};

Objection try_cache(std::uint64_t number, const Rules& rules, int steps = kScriptSteps) {
  return CacheScript(number, rules, steps).run();
}

TEST(SelectiveDrawn, TheCoreDoesAsTheModelSays) {
  const auto core = [](std::uint64_t number) { return try_cache(number, {}); };
  EXPECT_EQ(first_objection(core, kScripts), "");
}

TEST(SelectiveDrawn, EachRuleOfWhatIsKeptShows) {
  expect_shown(
      kShownByCaches,
      [](std::uint64_t number, const Rules& rules) { return try_cache(number, rules); }, kScripts);
}

TEST(SelectiveDrawn, AScriptWithoutStepsAsksForNothing) {
  EXPECT_EQ(try_cache(7, {}, 0), std::nullopt);
}

}  // namespace
}  // namespace ferry::test
