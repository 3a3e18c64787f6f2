// Converts a trace to a program.
//
// Events before the first backward become the segment `forward`, which main calls: one forward for
// the offloader. Later events become statements of main itself. Nodes are placed between the events
// by their number, each after the nodes that its edges lead to. Each output of a node has a slot
// for its edge.
//
// Everything that outlives forward reaches main as a result of the call: storages that the step
// itself holds (those that die in a backward belonged to the graph), the roots of backwards, and
// nodes whose saves die outside a backward, so that they die in the same order.
#pragma once

#include "ferry/capture.h"
#include "formats/program.h"
#include "real/capture/trace.h"

namespace ferry::real::capture {

// Throws CaptureError if a program cannot express the trace.
Program lower(const Trace& trace, const CaptureOptions& options);

}  // namespace ferry::real::capture
