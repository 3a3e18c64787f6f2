// Hooks see what a program saves, and the tape judges what they give back.
#include "sim/program/tape.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/program/tape_rig.h"

namespace ferry::sim {
namespace {

using test::kBytes;
using test::Names;
using test::Source;
using test::Trial;
using test::Watcher;

// Packs that hooks see of a forward that saves twice, excluding the first; `raises` in the region,
// and calls it again.
int packs_with_exclusion(bool raises) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  s.add(forward, Exclude{true});
  const Slot a = s.layer(forward, "a", {s.w}, {s.w});
  if (raises) s.add(forward, Raise{"boom"});
  s.add(forward, Exclude{false});
  s.result(forward, s.layer(forward, "b", {a}, {a}));
  s.call(forward);
  const CodeId after = s.code(CodeKind::kSegment, "after");
  s.result(after, s.layer(after, "c", {s.w}, {s.w}));
  s.call(after);
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
  run.run();
  EXPECT_EQ(run.errors().size(), raises ? 1u : 0u);
  return watcher->packs;
}

TEST(TapeTest, HooksSeeWhatIsSavedOutsideOfExclusions) {
  EXPECT_EQ(packs_with_exclusion(false), 2);  // b's and c's
  EXPECT_EQ(packs_with_exclusion(true), 1);   // c's: leaving by a raise ends the exclusion
}

TEST(TapeTest, AnExclusionThatTheMainCodeLeavesOpenEndsWithTheRun) {
  Source s;
  s.add(0, Exclude{true});
  s.add(0, Raise{"boom"});
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  {
    const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
    run.tape->run();
  }
  run.tape->drop_frames();
  EXPECT_EQ(run.errors(), Names{"boom"});
}

std::vector<check::Hazard> hazards_with(const std::function<Tensor(Trial&, const Tensor&)>& give) {
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "a", {s.w}, {});
  s.result(forward, s.layer(forward, "Mm", {a, s.w}, {a}));
  s.backward(s.call(forward));
  Trial run(s.program);
  const auto watcher = std::make_shared<Watcher>();
  watcher->give = [&](const Tensor& tensor) { return give(run, tensor); };
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), watcher);
  run.run();
  EXPECT_EQ(watcher->packs, 1);
  return run.tape->hazards();
}

TEST(TapeTest, HooksThatReturnAnotherTensorAreAWrongValue) {
  EXPECT_TRUE(hazards_with([](Trial&, const Tensor& tensor) { return tensor; }).empty());
  // The same bytes elsewhere are right.
  EXPECT_TRUE(hazards_with([](Trial& run, const Tensor& tensor) {
                const Tensor copy =
                    make_tensor(run.machine.allocate(kBytes, run.machine.current_stream()),
                                tensor->layout, run.machine.new_version());
                run.machine.copy_on_device("copy", range_of(tensor), range_of(copy), 1);
                return copy;
              }).empty());
  const std::vector<check::Hazard> wrong =
      hazards_with([](Trial& run, const Tensor&) { return run.tape->globals()[0].tensor; });
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].kind, check::HazardKind::kValue);
  EXPECT_EQ(to_string(wrong[0]),
            "wrong value: a tensor that Mm saved came back with other contents");
}

TEST(TapeTest, HooksThatReturnAnotherLayoutAreAWrongValue) {
  const std::vector<check::Hazard> wrong = hazards_with([](Trial&, const Tensor& tensor) {
    Window window = *tensor->layout.window;
    window.layout.shape.push_back(1);
    window.layout.strides.push_back(1);
    return make_tensor(tensor->storage, {std::make_shared<Window>(window), 0}, tensor->version);
  });
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(to_string(wrong[0]),
            "wrong value: a tensor that Mm saved came back with another shape, type or strides");
}

TEST(TapeTest, WhoListensKnowsTheNodeThatSaves) {
  class Names final : public Hooks<Tensor> {
   public:
    explicit Names(Tape& tape) : tape_(tape) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor&) override {
      names.emplace_back(tape_.saving_node());
      return nullptr;
    }
    std::vector<std::string> names;

   private:
    Tape& tape_;
  };
  Source s;
  const CodeId forward = s.code(CodeKind::kSegment, "forward");
  const Slot a = s.layer(forward, "Embedding", {s.w}, {s.w});
  s.result(forward, s.layer(forward, "Mm", {a, s.w}, {a, s.w}));
  s.call(forward);
  Trial run(s.program);
  const auto names = std::make_shared<Names>(*run.tape);
  const HooksGuard<SimAutograd> guard(run.tape->autograd(), names);
  run.run();
  EXPECT_EQ(names->names, (std::vector<std::string>{"Embedding", "Mm", "Mm"}));
  EXPECT_EQ(run.tape->saving_node(), "");
}

}  // namespace
}  // namespace ferry::sim
