#include "scenarios/l2.h"

#include <gtest/gtest.h>

#include "formats/builder.h"

namespace ferry {
namespace {

constexpr std::int64_t kSmall = 2 * 1024;  // bytes of a tensor that fits
constexpr std::int64_t kLarge = 2 * 4096;

struct L2Test : ::testing::Test {
  Builder b;
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const TypeId small = b.type({1024});
  const TypeId large = b.type({4096});

  Slot op(std::vector<Slot> in, TypeId out) { return b.op(forward, "op", std::move(in), out); }
  // Of the operators of a code, in order.
  std::vector<std::int64_t> found(CodeId code, std::int64_t l2_bytes = kSmall) {
    Hardware card;
    card.l2_bytes = l2_bytes;
    find_in_l2(card, b.program);
    std::vector<std::int64_t> bytes;
    for (const Statement& statement : b.program.codes[code].statements) {
      if (const auto* op = std::get_if<Op>(&statement.action)) bytes.push_back(op->cached_bytes);
    }
    return bytes;
  }
  std::vector<std::int64_t> found() { return found(forward); }
};

using Found = std::vector<std::int64_t>;

TEST_F(L2Test, WhatTheOperatorBeforeMadeIsFound) {
  const Slot a = op({}, small);
  const Slot c = op({a}, small);
  op({a, c}, small);  // `a` is of the operator before that
  EXPECT_EQ(found(), (Found{0, kSmall, kSmall}));
}

TEST_F(L2Test, WhatDoesNotFitIsNot) {
  op({op({}, large)}, large);
  EXPECT_EQ(found(), (Found{0, 0}));
  EXPECT_EQ(found(forward, kLarge), (Found{0, kLarge}));
  EXPECT_EQ(found(forward, 0), (Found{0, 0}));
}

TEST_F(L2Test, AViewIsOfItsStorage) {
  const Slot a = op({}, small);
  const Slot view = b.view(forward, b.view(forward, a, b.type({512})), b.type({256}));
  const Slot c = op({view}, small);
  op({b.view(forward, c, small), c}, small);  // once
  EXPECT_EQ(found(), (Found{0, kSmall, kSmall}));
}

TEST_F(L2Test, WhatWasWrittenInPlaceIsFound) {
  const Slot a = op({}, small);
  op({}, small);
  b.write(forward, "add_", a);
  op({a}, small);
  EXPECT_EQ(found().back(), kSmall);
}

TEST_F(L2Test, NoMoreThanTheOperatorReads) {
  const Slot a = op({}, small);
  op({a}, small);
  std::get<Op>(b.program.codes[forward].statements.back().action).read_bytes = 5;
  EXPECT_EQ(found(), (Found{0, 5}));
}

TEST_F(L2Test, ACallOrAnotherStreamComesBetween) {
  const CodeId other = b.code(CodeKind::kSegment, "other");
  const Slot a = op({}, small);
  b.add(forward, Call{other, {}, {}});
  const Slot c = op({a}, small);
  b.add(forward, SetStream{1});
  op({c}, small);
  EXPECT_EQ(found(), (Found{0, 0, 0}));
}

// The gradient of what the node made, that the node before it in backward just wrote.
TEST_F(L2Test, ABackwardBeginsWithItsGradient) {
  const CodeId body = b.code(CodeKind::kBody, "OpBackward");
  const Slot gradient = b.argument(body);
  const Slot a = b.op(body, "mul", {gradient}, small);
  b.op(body, "mul", {gradient}, small);
  b.result(body, a);
  const Slot made = op({}, small);
  b.add(forward, MakeNode{"OpBackward", b.node_id(), {}, {made}, {}, body});
  EXPECT_EQ(found(body), (Found{kSmall, 0}));
}

}  // namespace
}  // namespace ferry
