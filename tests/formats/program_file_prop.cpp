// Random programs, of any structure: they need not make sense, only survive the file.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "formats/layout.h"
#include "formats/limits.h"
#include "formats/program_file.h"
#include "tests/formats/sample.h"

namespace ferry {
namespace {

using Numbers = std::vector<std::uint32_t>;

std::uint32_t number() { return *rc::gen::arbitrary<std::uint16_t>(); }
Numbers numbers() {
  const auto small = *rc::gen::arbitrary<std::vector<std::uint16_t>>();
  return {small.begin(), small.end()};
}
std::int64_t count() { return *rc::gen::arbitrary<std::uint32_t>(); }

// Printable, with what JSON escapes and a letter of two bytes.
std::string text() {
  std::string result;
  for (const std::uint8_t byte : *rc::gen::arbitrary<std::vector<std::uint8_t>>()) {
    result += byte < 128 ? std::string(1, static_cast<char>(byte)) : std::string("é");
  }
  return result;
}

TypeId type(Program& program) {
  std::vector<std::int64_t> shape;
  for (const auto size : *rc::gen::resize(4, rc::gen::arbitrary<std::vector<std::uint8_t>>())) {
    shape.push_back(size % 16);
  }
  Layout layout = contiguous_layout(static_cast<DType>(number() % 11), shape);
  if (number() % 2 == 0) layout.offset = number();
  if (number() % 2 == 0 && !layout.strides.empty()) layout.strides[0] = number();
  program.types.push_back(layout);
  return static_cast<TypeId>(program.types.size() - 1);
}

// It has as many FLOPs as they say.
void multiply(Op& op) {
  const auto size = [] { return 1 + number() % 100; };
  const std::int64_t aligned = std::int64_t{2} << number() % 4;
  op.flops = 0;
  for (std::uint32_t i = 0; i < 1 + number() % 2; ++i) {
    const MatrixProduct made{size(), size(), size(), size(), aligned};
    op.flops += 2 * made.batch * made.m * made.n * made.k;
    op.products.push_back(made);
  }
}

// The options are written where there is a recompute.
Call call(bool plain) {
  Call call{.code = number(), .in = numbers(), .out = numbers()};
  if (plain) return call;
  if (*rc::gen::arbitrary<bool>()) {
    call.recompute = Recompute::kReplay;  // it has no options
    return call;
  }
  call.recompute = *rc::gen::arbitrary<bool>() ? Recompute::kCheckpoint : Recompute::kReentrant;
  call.early_stop = *rc::gen::arbitrary<bool>();
  call.preserve_rng = *rc::gen::arbitrary<bool>();
  call.determinism_check = *rc::gen::arbitrary<bool>();
  call.captured = number();
  return call;
}

Action action(Program& program) {
  const bool flag = *rc::gen::arbitrary<bool>();
  switch (number() % 16) {
    case 0: {
      Op op{.name = text(), .in = numbers(), .out = numbers(), .types = {}, .writes = numbers()};
      op.flops = count();
      op.read_bytes = count();
      op.written_bytes = count();
      op.measured_ns = count();
      op.once = flag;
      op.random = *rc::gen::arbitrary<bool>();
      op.kernels = 1 + number() % 1000;
      if (flag) multiply(op);
      for (std::size_t i = 0; i < op.out.size(); ++i) op.types.push_back(type(program));
      return op;
    }
    case 1:
      return View{number(), number(), type(program)};
    case 2:
      return MakeNode{text(), number(), numbers(), numbers(), numbers(), number()};
    case 3:
      return Save{number(), numbers()};
    case 4:
      return Free{numbers()};
    case 5:
      if (flag && *rc::gen::arbitrary<bool>()) return Module{text(), flag, numbers()};
      return Module{text(), flag};
    case 6:
      return Exclude{flag};
    case 7:
      return call(flag);
    case 8:
      return Backward{numbers(), numbers(), numbers(), flag, *rc::gen::arbitrary<bool>()};
    case 9:
      return SetStream{number() % limits::kStreams};
    case 10:
      return Sync{number() % limits::kStreams, number() % limits::kStreams};
    case 11:
      return RecordUse{number(), number() % limits::kStreams};
    case 12:
      return Raise{text()};
    case 13:
      return Move{number()};
    case 14:
      return Ambient{number()};
    default:
      return When{flag, number()};
  }
}

Program program() {
  Program program;
  program.name = text();
  program.about = {{"a", text()}, {"b", text()}};
  for (std::uint32_t i = 0; i < number() % 4; ++i) {
    program.globals.push_back({.kind = static_cast<GlobalKind>(number() % 3),
                               .name = text(),
                               .type = type(program),
                               .requires_grad = *rc::gen::arbitrary<bool>(),
                               .alias = number() % 2 == 0 ? number() : kNoSlot,
                               .line = 0});
  }
  const auto kinds = *rc::gen::resize(4, rc::gen::arbitrary<std::vector<bool>>());
  program.main = static_cast<CodeId>(kinds.size());
  for (std::size_t i = 0; i <= kinds.size(); ++i) {
    Code code;
    code.kind = i == program.main ? CodeKind::kMain
                : kinds[i]        ? CodeKind::kSegment
                                  : CodeKind::kBody;
    if (code.kind != CodeKind::kMain) {
      code.name = text();
      code.arguments = numbers();
      code.results = numbers();
    }
    if (code.kind == CodeKind::kBody) {
      code.saved = numbers();
      code.results.push_back(kNoSlot);
    }
    for (std::uint32_t n = *rc::gen::resize(20, rc::gen::inRange(0u, 20u)); n > 0; --n) {
      code.statements.push_back({.action = action(program), .line = 0});
    }
    program.codes.push_back(std::move(code));
  }
  return program;
}

bool same(const Program& a, const Program& b, const Action& left, const Action& right) {
  if (const auto* view = std::get_if<View>(&left)) {
    const auto* other = std::get_if<View>(&right);
    return other != nullptr && view->out == other->out && view->of == other->of &&
           a.types[view->type] == b.types[other->type];
  }
  if (const auto* op = std::get_if<Op>(&left)) {
    const auto* other = std::get_if<Op>(&right);
    if (other == nullptr || op->types.size() != other->types.size()) return false;
    for (std::size_t i = 0; i < op->types.size(); ++i) {
      if (!(a.types[op->types[i]] == b.types[other->types[i]])) return false;
    }
    Op renumbered = *op;
    renumbered.types = other->types;
    return renumbered == *other;
  }
  return left == right;
}

RC_GTEST_PROP(ProgramFileProp, ReadingWhatWasWrittenGivesTheSameProgram, ()) {
  const Program before = program();
  const std::string written = to_text(before);
  std::istringstream in(written);
  const Program after = read_program(in, "p.jsonl");
  RC_ASSERT(to_text(after) == written);
  RC_ASSERT(digest(after) == digest(before));
  RC_ASSERT(after.name == before.name);
  RC_ASSERT(after.about == before.about);
  RC_ASSERT(after.main == before.main);
  RC_ASSERT(after.globals.size() == before.globals.size());
  RC_ASSERT(after.codes.size() == before.codes.size());
  for (std::size_t i = 0; i < before.codes.size(); ++i) {
    const Code& a = before.codes[i];
    const Code& b = after.codes[i];
    RC_ASSERT(a.kind == b.kind && a.name == b.name && a.arguments == b.arguments);
    RC_ASSERT(a.saved == b.saved && a.results == b.results);
    RC_ASSERT(a.statements.size() == b.statements.size());
    for (std::size_t k = 0; k < a.statements.size(); ++k) {
      RC_ASSERT(same(before, after, a.statements[k].action, b.statements[k].action));
    }
  }
}

// One byte changed anywhere: a program or an InputError, never anything else.
RC_GTEST_PROP(ProgramFileProp, ADamagedFileIsReadOrRefused, ()) {
  std::string text = testing::kSample;
  const auto at = *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, text.size()));
  text[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  testing::error_of([&] { testing::parse(text); });
}

}  // namespace
}  // namespace ferry
