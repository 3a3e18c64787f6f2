#include "scenarios/op_signature.h"

#include <gtest/gtest.h>

#include <map>

#include "formats/builder.h"
#include "scenarios/kernel_times.h"

namespace ferry {
namespace {

// By name; each op of these programs has a name of its own.
std::map<std::string, OpSignature> signatures(Program program) {
  std::map<std::string, OpSignature> all;
  each_op(program, [&](Op& op, const OpSignature& signature) { all[op.name] = signature; });
  return all;
}

TEST(OpSignatureTest, SlotsHaveTheLayoutsThatStatementsSay) {
  Builder b;
  const TypeId square = b.type({4, 4});
  const TypeId row = b.layout({DType::kBF16, {4}, {4}, 2});
  const Slot w = b.global(GlobalKind::kParameter, square);
  const Slot made = b.op(0, "makes", {w}, square);
  const Slot view = b.view(0, made, row);
  b.write(0, "writes", view);
  const auto all = signatures(b.program);
  EXPECT_EQ(all.at("makes").in.at(0), b.program.types[square]);
  EXPECT_EQ(all.at("makes").out.at(0), b.program.types[square]);
  EXPECT_EQ(all.at("makes").read_bytes, 64);
  EXPECT_EQ(all.at("makes").written_bytes, 32);
  EXPECT_EQ(all.at("writes").in.at(0), (Layout{DType::kBF16, {4}, {4}, 0}));  // without its offset
  EXPECT_EQ(all.at("writes").writes, (std::vector<std::uint32_t>{0}));
}

TEST(OpSignatureTest, CallsHandLayoutsInAndOut) {
  Builder b;
  const TypeId square = b.type({4, 4});
  const Slot w = b.global(GlobalKind::kParameter, square);
  const CodeId segment = b.code(CodeKind::kSegment, "forward");
  const Slot x = b.argument(segment);
  b.result(segment, b.op(segment, "inside", {x}, b.type({2})));
  const Slot y = b.slot(0);
  b.add(0, Call{segment, {w}, {y}});
  b.op(0, "after", {y}, square);
  const auto all = signatures(b.program);
  EXPECT_EQ(all.at("inside").in.at(0), b.program.types[square]);
  EXPECT_EQ(all.at("after").in.at(0), b.program.types[b.type({2})]);
}

TEST(OpSignatureTest, ABodyKnowsWhatWasSavedAndNotItsGradients) {
  Builder b;
  const TypeId square = b.type({4, 4});
  const Slot w = b.global(GlobalKind::kParameter, square);
  const CodeId segment = b.code(CodeKind::kSegment, "forward");
  const CodeId body = b.code(CodeKind::kBody, "B");
  const Slot gradient = b.argument(body);
  const Slot first = b.saved(body);
  const Slot second = b.saved(body);
  b.result(body, b.op(body, "backward", {gradient, first, second}, square));
  const std::uint32_t node = b.node_id();
  const Slot y = b.op(segment, "forward", {w}, b.type({8}));
  b.add(segment, MakeNode{"N", node, {w}, {y}, {w}, body});
  b.add(segment, Save{node, {y}});
  b.result(segment, y);
  const Slot loss = b.slot(0);
  b.add(0, Call{segment, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  const OpSignature backward = signatures(b.program).at("backward");
  EXPECT_EQ(backward.in.at(0), std::nullopt);
  EXPECT_EQ(backward.in.at(1), b.program.types[square]);
  EXPECT_EQ(backward.in.at(2), b.program.types[b.type({8})]);
}

TEST(OpSignatureTest, AStrideThatMeansNothingTellsNothingApart) {
  OpSignature a;
  OpSignature b;
  a.in = {Layout{DType::kF32, {1, 8}, {8, 1}, 0}};
  b.in = {Layout{DType::kF32, {1, 8}, {99, 1}, 7}};
  EXPECT_EQ(signature_text(canonical(a)), signature_text(canonical(b)));
  b.in[0] = Layout{DType::kF32, {1, 8}, {8, 2}, 0};
  EXPECT_NE(signature_text(canonical(a)), signature_text(canonical(b)));
}

}  // namespace
}  // namespace ferry
