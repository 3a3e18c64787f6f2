// Makes a program of a trace.
//
// Events before the first backward become the segment `forward`, called by main: one forward of the
// offloader. Later events become statements of main itself. Nodes are placed by their number
// between the events, each after those that its edges lead to. Edges have slots of their own, one
// per output of a node.
//
// Results of the call bring main everything that outlives forward: storages that the step itself
// holds (those that die in a backward were the graph's), the roots of backwards, and nodes whose
// saves die outside a backward, so that they die in the same order.
#pragma once

#include "ferry/capture.h"
#include "formats/program.h"
#include "real/capture/trace.h"

namespace ferry::real::capture {

// Throws CaptureError if the trace cannot be expressed as a program.
Program lower(const Trace& trace, const CaptureOptions& options);

}  // namespace ferry::real::capture
