// Finds the statements of a plan's spans in a program.
//
// The forward is the code that the first Call of main runs. Its operators are the Ops among its own
// statements, in order, without tensors from before the step (kGivenOp). Views are not operators. A
// span is cut so that an operator stays together with its node:
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
// (A real step knows that an operator was the last one of a span when it sees the next operator.)
//
// A node that is made before its operator saves what the operator reads. So a tensor that operator
// 4 makes, and that operator 5 reads and saves, is recomputed by the span above. A span that ends
// with operator 4 keeps it.
//
// A forward with a When has no spans. A span contains no Call, Backward or Exclude, because their
// statements are not those of the forward. If nested spans begin with the same operator, the outer
// one begins first; if they end with the same operator, the outer one ends last.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"

namespace ferry {

// Returns the forward; empty if main calls nothing.
std::optional<CodeId> spanned_code(const Program& program);

// The statements [begin, end) of the forward that belong to an operator.
struct OperatorRange {
  std::size_t op = 0;  // the operator's own statement
  std::size_t begin = 0;
  std::size_t end = 0;
  bool joins_next = true;  // a span can contain this operator and the next one
};

// Returns the range of each operator of the forward, in order. Empty if the forward cannot have
// spans.
std::vector<OperatorRange> operator_ranges(const Program& program);

struct SpanRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<std::size_t> keep = {};  // statements of operators that are kept, in order
  std::vector<SpanRange> inner = {};   // in order, within this span
};

// Throws std::invalid_argument if the program has no such span.
std::vector<SpanRange> span_ranges(const Program& program, const std::vector<PlanSpan>& spans);

}  // namespace ferry
