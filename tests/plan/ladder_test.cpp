// Blocks, each a norm that is cheap and a linear that is dear:
//
//   b.0.norm   t = norm(x), saves t
//   b.0.lin    u = up(x), saves u; y = lin(x)
//   b.0        both; saves x last
#include "plan/ladder.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

constexpr std::int64_t kBytes = 1 << 20;

class Blocks {
 public:
  Program make(int blocks) {
    type_ = b_.type({kBytes / 2});
    weight_ = b_.global(GlobalKind::kParameter, type_);
    forward_ = b_.code(CodeKind::kSegment, "forward");
    body_ = b_.code(CodeKind::kBody, "Backward");
    Slot x = op("first", weight_, 10);
    for (int i = 0; i < blocks; ++i) x = block("b." + std::to_string(i), x);
    b_.result(forward_, x);
    return std::move(b_.program);
  }

 private:
  Slot op(const std::string& name, Slot in, std::int64_t ns) {
    const Slot out = b_.slot(forward_);
    b_.add(forward_, Op{name, {in}, {out}, {type_}, {}, 0, 0, 0, ns});
    return out;
  }
  void mark(const std::string& module, bool enter) { b_.add(forward_, Module{module, enter}); }
  void save(Slot saved) {
    b_.add(forward_, MakeNode{"Backward", b_.node_id(), {}, {}, {saved}, body_});
  }
  Slot block(const std::string& name, Slot x) {
    mark(name, true);
    mark(name + ".norm", true);
    save(op("norm", x, 10));
    mark(name + ".norm", false);
    mark(name + ".lin", true);
    save(op("up", x, 500));
    const Slot y = op("lin", x, 1000);
    mark(name + ".lin", false);
    save(x);
    mark(name, false);
    return y;
  }

  Builder b_;
  TypeId type_ = 0;
  Slot weight_ = 0;
  CodeId forward_ = 0;
  CodeId body_ = 0;
};

std::string text(const std::vector<Span>& spans) {
  std::string all;
  for (const Span& span : spans) {
    all += (all.empty() ? "" : " ") + span.module + ":" + std::to_string(span.saves);
  }
  return all;
}

// To free what is saved first needs not what is computed after it, and the last op is never needed.
TEST(LadderTest, AModulesSpansEndAtEachStorageThatItAloneSaves) {
  std::string found;
  for (const Span& span : module_spans(Blocks().make(1), test::tiny_hardware())) {
    found += span.module + ": " + std::to_string(span.saves) + " of " +
             std::to_string(span.all_saves) + ", " + std::to_string(span.bytes / kBytes) +
             " MiB for " + std::to_string(span.ns) + "\n";
  }
  EXPECT_EQ(found,
            "b.0: 1 of 3, 1 MiB for 10\n"
            "b.0: 2 of 3, 2 MiB for 510\n"
            "b.0.norm: 1 of 1, 1 MiB for 10\n"
            "b.0.lin: 1 of 1, 1 MiB for 500\n");
}

TEST(LadderTest, CheapBytesComeFirstAndTheEarlierOfEqual) {
  const Ladder ladder(module_spans(Blocks().make(2), test::tiny_hardware()));
  std::string found;
  for (std::size_t rung = 0; rung < ladder.rungs(); ++rung) {
    found += std::to_string(ladder.bytes(rung) / kBytes) + " MiB for " +
             std::to_string(ladder.ns(rung)) + ": " + text(ladder.spans(rung)) + "\n";
  }
  EXPECT_EQ(found,
            "0 MiB for 0: \n"
            "1 MiB for 10: b.0.norm:1\n"
            "2 MiB for 20: b.0.norm:1 b.1.norm:1\n"
            "3 MiB for 520: b.0.norm:1 b.0.lin:1 b.1.norm:1\n"
            "4 MiB for 1020: b.0.norm:1 b.0.lin:1 b.1.norm:1 b.1.lin:1\n");
}

Span span(const std::string& module, std::size_t begin, std::size_t end, std::int64_t bytes,
          std::int64_t ns) {
  Span made;
  made.module = module;
  made.begin = begin;
  made.end = end;
  made.bytes = bytes;
  made.ns = ns;
  return made;
}

TEST(LadderTest, OfModulesThatNestOneIsTaken) {
  const Ladder parts_first(
      {span("whole", 0, 10, 100, 50), span("part", 1, 4, 40, 1), span("other", 5, 9, 50, 40)});
  ASSERT_EQ(parts_first.rungs(), 4u);
  EXPECT_EQ(text(parts_first.spans(1)), "part:0");
  EXPECT_EQ(text(parts_first.spans(2)), "part:0 other:0");
  EXPECT_EQ(text(parts_first.spans(3)), "whole:0");  // more than both parts free
}

TEST(LadderTest, AModuleThatFreesNoMoreThanItsPartsForMoreTimeIsNoRung) {
  const Ladder ladder(
      {span("whole", 0, 10, 90, 100), span("part", 1, 4, 40, 30), span("other", 5, 9, 50, 40)});
  EXPECT_EQ(text(ladder.spans(ladder.rungs() - 1)), "part:0 other:0");
}

// A rung that is undercut by the line between its neighbours would be taken for more than it frees.
TEST(LadderTest, WhatIsDearForItsBytesIsPassedOver) {
  const Ladder ladder({span("m", 0, 10, 10, 90), span("m", 0, 10, 20, 100)});
  ASSERT_EQ(ladder.rungs(), 2u);
  EXPECT_EQ(ladder.bytes(1), 20);
}

}  // namespace
}  // namespace ferry::plan
