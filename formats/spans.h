// Where the spans of a plan lie in a program.
//
// The forward is the code that main's first Call runs. Its operators are the Ops among its own
// statements, in order, but for what it was given (kGivenOp): so their places are those at which
// they run, and views are none of them. A span is cut where it parts no operator from its node:
//
//     op 3
//     free …
//     node of op 4   ┐
//     op 4           │
//     save …         │ the span from 4 to 5
//     node of op 5   │
//     op 5           │
//     save …         │
//     free …         ┘
//     node of op 6
//     op 6
//
// (A real step knows that an operator was the span's last when it sees another.)
//
// A node made before its operator saves what that reads. So a tensor that operator 4 makes and
// operator 5 reads and saves is made again by that span, and is kept by one that ends with 4.
//
// A forward with a When has no spans, and no span has a Call, a Backward or an Exclude in it: what
// runs there is not the forward's own. Of nested spans that begin with one operator, the outer one
// begins first; where they end with one, it ends last.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"

namespace ferry {

// None: main calls nothing.
std::optional<CodeId> spanned_code(const Program& program);

// Statements [begin, end) of the forward.
struct OperatorRange {
  std::size_t op = 0;  // the operator's own statement
  std::size_t begin = 0;
  std::size_t end = 0;
  bool joins_next = true;  // no statement up to the next one's parts the two
};

// Of each operator of the forward, in order; none, if it may have no spans.
std::vector<OperatorRange> operator_ranges(const Program& program);

struct SpanRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<std::size_t> keep = {};  // statements of operators, in order
  std::vector<SpanRange> inner = {};   // in order, within it
};

// Throws std::invalid_argument where the program has no such span.
std::vector<SpanRange> span_ranges(const Program& program, const std::vector<PlanSpan>& spans);

}  // namespace ferry
