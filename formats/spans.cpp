#include "formats/spans.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <variant>

#include "formats/statements.h"

namespace ferry {
namespace {

// A node that is made after its operator names the operator's tensors as its outputs.
bool is_of_earlier(const MakeNode& node, const Op& op) {
  return std::any_of(node.out.begin(), node.out.end(), [&op](Slot slot) {
    return std::find(op.out.begin(), op.out.end(), slot) != op.out.end();
  });
}

// Returns where the operator of statement `to` begins. `before` is the operator before it, if there
// is one, and `from` the first statement that can belong to this one.
std::size_t begin_of(const Statements& statements, const Op* before, std::size_t from,
                     std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    const auto* node = std::get_if<MakeNode>(&statements[i].action);
    if (node && (!before || !is_of_earlier(*node, *before))) return i;
  }
  return to;
}

bool parts(const Action& action) {
  return std::holds_alternative<Call>(action) || std::holds_alternative<Backward>(action) ||
         std::holds_alternative<Exclude>(action);
}

bool any_in(const Statements& statements, std::size_t begin, std::size_t end,
            bool (*is)(const Action&)) {
  return std::any_of(statements.begin() + static_cast<std::ptrdiff_t>(begin),
                     statements.begin() + static_cast<std::ptrdiff_t>(end),
                     [is](const Statement& each) { return is(each.action); });
}

// Returns the end of the operator of statement `from`: the beginning of the next operator, or of a
// statement that no span can contain.
std::size_t end_of(const Statements& statements, std::size_t from, std::size_t next) {
  std::size_t end = from + 1;
  while (end < next && !parts(statements[end].action)) ++end;
  return end;
}

std::string name_of(const PlanSpan& span) {
  return "the span of operators " + std::to_string(span.first) + " to " + std::to_string(span.last);
}

// Finds the statements of spans, and checks the spans.
class Ranging {
 public:
  explicit Ranging(const Program& program) : program_(program), ops_(operator_ranges(program)) {}

  std::size_t operators() const { return ops_.size(); }

  // `bounds` are the first and the last operator that the spans may contain. `depth` is their level
  // of nesting.
  std::vector<SpanRange> within(const std::vector<PlanSpan>& spans,
                                std::pair<std::uint64_t, std::uint64_t> bounds,
                                std::size_t depth) const {
    std::vector<SpanRange> found;
    std::uint64_t free = bounds.first;
    for (const PlanSpan& span : spans) {
      if (span.first < free || span.last < span.first || span.last > bounds.second) {
        throw std::invalid_argument(
            name_of(span) + (depth == 1 ? ": the forward has " + std::to_string(operators()) +
                                              " operators, and spans are in order"
                                        : ": inner spans are in order, and within operators " +
                                              std::to_string(bounds.first) + " to " +
                                              std::to_string(bounds.second)));
      }
      free = span.last + 1;
      found.push_back(range_of(span, depth));
    }
    return found;
  }

 private:
  SpanRange range_of(const PlanSpan& span, std::size_t depth) const {
    if (depth > kSpanDepth) {
      throw std::invalid_argument("spans are nested more than " + std::to_string(kSpanDepth) +
                                  " deep");
    }
    check_names(span);
    SpanRange range{.begin = ops_[span.first].begin, .end = ops_[span.last].end};
    if (any_in(statements(), range.begin, range.end, parts)) {
      throw std::invalid_argument(name_of(span) + " has a call, a backward or an exclusion in it");
    }
    for (const std::uint64_t kept : span.keep) {
      if (kept < span.first || kept > span.last) {
        throw std::invalid_argument(name_of(span) + " has no operator " + std::to_string(kept) +
                                    " to keep");
      }
      range.keep.push_back(ops_[kept].op);
    }
    std::sort(range.keep.begin(), range.keep.end());
    range.inner = within(span.inner, {span.first, span.last}, depth + 1);
    return range;
  }

  void check_names(const PlanSpan& span) const {
    for (const auto& [place, planned] :
         {std::pair(span.first, span.first_op), std::pair(span.last, span.last_op)}) {
      const std::string& here = std::get<Op>(statements()[ops_[place].op].action).name;
      if (planned.empty() || planned == here) continue;
      throw std::invalid_argument(name_of(span) + ": operator " + std::to_string(place) + " is " +
                                  here + " in the program, not " + planned);
    }
  }
  const Statements& statements() const {
    return program_.codes[*spanned_code(program_)].statements;
  }

  const Program& program_;
  const std::vector<OperatorRange> ops_;
};

}  // namespace

std::optional<CodeId> spanned_code(const Program& program) {
  for (const Statement& statement : program.codes.at(program.main).statements) {
    if (const auto* call = std::get_if<Call>(&statement.action)) return call->code;
  }
  return std::nullopt;
}

std::vector<OperatorRange> operator_ranges(const Program& program) {
  const std::optional<CodeId> forward = spanned_code(program);
  if (!forward) return {};
  const Statements& statements = program.codes[*forward].statements;
  const auto is_when = [](const Action& each) { return std::holds_alternative<When>(each); };
  if (any_in(statements, 0, statements.size(), is_when)) return {};
  std::vector<OperatorRange> found;
  const Op* before = nullptr;
  std::size_t from = 0;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const auto* op = std::get_if<Op>(&statements[i].action);
    if (!op || op->name == kGivenOp) continue;
    for (std::size_t between = from; between < i; ++between) {
      if (parts(statements[between].action)) from = between + 1;
    }
    found.push_back({.op = i, .begin = begin_of(statements, before, from, i)});
    before = op;
    from = i + 1;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool last = i + 1 == found.size();
    const std::size_t next = last ? statements.size() : found[i + 1].begin;
    found[i].end = end_of(statements, found[i].op, next);
    found[i].joins_next = !last && !any_in(statements, found[i].op, found[i + 1].op, parts);
  }
  return found;
}

std::vector<SpanRange> span_ranges(const Program& program, const std::vector<PlanSpan>& spans) {
  if (spans.empty()) return {};
  const Ranging ranging(program);
  if (ranging.operators() == 0) {
    throw std::invalid_argument("the program's forward has no spans of operators");
  }
  return ranging.within(spans, {0, ranging.operators() - 1}, 1);
}

}  // namespace ferry
