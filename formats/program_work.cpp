#include "formats/program_work.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "formats/limits.h"
#include "formats/statements.h"

namespace ferry {
namespace {

constexpr std::int64_t kSlotsOfAFrame = 64;  // allocating so many slots costs as much as one use

// Computes the work of each code after that of the codes that it runs.
class Works {
 public:
  explicit Works(const ProgramLookup& lookup)
      : lookup_(lookup), program_(lookup.program()), known_(program_.codes.size()) {}

  void check() {
    for (CodeId code = 0; code < program_.codes.size(); ++code) work(code);
  }

 private:
  struct CodeWork {
    std::int64_t work = 0;     // one run and its recomputes
    std::int64_t forward = 0;  // one run without recomputes
    std::size_t depth = 1;     // nesting of codes, including this one
  };

  const CodeWork& work(CodeId id) {
    if (known_[id]) return *known_[id];
    known_[id] = CodeWork();  // stops the recursion if a body runs itself
    const Code& code = program_.codes[id];
    lookup_.check_depth(++depth_, code.line);
    const std::int64_t own = own_work(program_, id);
    CodeWork sum{.work = own, .forward = own, .depth = 1};
    check_sum(sum, code.line);
    for (const Statement& statement : code.statements) {
      if (const auto* call = std::get_if<Call>(&statement.action)) {
        add(sum, call->code, call->recompute != Recompute::kNone, statement.line);
      } else if (const auto* node = std::get_if<MakeNode>(&statement.action)) {
        add(sum, node->body, false, statement.line);
      }
    }
    --depth_;
    known_[id] = sum;
    return *known_[id];
  }

  // A recompute runs the code once more, with the segments in it. Each sum is at most kWork, so
  // there is no overflow.
  void add(CodeWork& sum, CodeId code, bool recomputed, std::uint32_t line) {
    const CodeWork& other = work(code);
    sum.work += other.work + (recomputed ? other.forward : 0);
    sum.forward += other.forward;
    sum.depth = std::max(sum.depth, other.depth + 1);
    check_sum(sum, line);
  }

  void check_sum(const CodeWork& sum, std::uint32_t line) const {
    lookup_.check_depth(sum.depth, line);
    if (sum.work <= limits::kWork) return;
    lookup_.fail(line, "expected a code that names at most " + std::to_string(limits::kWork) +
                           " slots, counted each time that they run, with the code that it calls");
  }

  const ProgramLookup& lookup_;
  const Program& program_;
  std::vector<std::optional<CodeWork>> known_;
  std::size_t depth_ = 0;
};

}  // namespace

std::int64_t own_work(const Program& program, CodeId id) {
  const Code& code = program.codes[id];
  const auto globals = static_cast<Slot>(program.globals.size());
  std::int64_t work = 1;
  Slot past = globals;
  const auto see = [&](Slot slot) {
    if (slot != kNoSlot) past = std::max(past, slot + 1);
  };
  for (const auto* slots : {&code.arguments, &code.saved, &code.results}) {
    work += static_cast<std::int64_t>(slots->size());
    std::for_each(slots->begin(), slots->end(), see);
  }
  for (const Statement& statement : code.statements) {
    ++work;
    for_each_slot(statement.action, [&](Slot slot, Role) {
      ++work;
      see(slot);
    });
  }
  return work + (past - globals) / kSlotsOfAFrame;
}

void check_work(const ProgramLookup& lookup) { Works(lookup).check(); }

}  // namespace ferry
