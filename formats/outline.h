// A captured forward, cut at its modules: each run of a chosen module becomes a code of its own,
// called as a checkpoint, so that a plan can say which of them are recomputed.
//
// The forward is the first segment that holds module markers: a capture has one. Its i-th Call
// of a recompute kind is segment i. The arguments and results of such a call follow from the
// slots. If the marker names the arguments, those are its `in`, and what else it reads is
// captured.
//
//     forward            f = op a                 f = op a
//                        enter m                  call m (f, h) -> (y)
//                        t = op f, w      ==>     free h
//                        y = op t, h              op y
//                        free t, h
//                        leave m                  m (f', h') -> (y')
//                        op y                       enter m … free t', h' … leave m
//
// Outlined and called without a recompute, a program computes the same in the same order. Two
// lifetimes change: an argument lives until the call ends, even if the module frees it, as in
// PyTorch; and a value of the module that nobody reads or frees dies with the call, not with the
// forward.
//
// Not outlined: modules in bodies, whose grad mode a call would change, and in main, whose calls
// are forwards. A slot that a When assigns is not followed to a When on the other side of a
// module's boundary; the checker refuses such a result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/modules.h"
#include "formats/program.h"

namespace ferry {

// `program` must pass the checker; the result then does. `modules` are marker names, in any
// order; of two chosen modules that nest, the outer one is outlined. A module that runs n
// times becomes n segments. Throws std::invalid_argument, with the module's name and its
// marker's line, if there is no such module, if only an exception leaves it, or if its
// boundary parts what a call cannot hand over: a node from its Save, or a slot's edge from its
// tensor.
Program outline(const Program& program, std::span<const std::string> modules);

}  // namespace ferry
