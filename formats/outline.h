// A captured forward, cut at its modules: each run of a chosen module becomes a code of its own,
// called as a checkpoint, so that a plan can say which of them are recomputed.
//
// The forward is the first segment that holds module markers: a capture has one. Its i-th Call of a
// recompute kind is segment i. What such a call is handed and hands back follows from the slots,
// but where the marker says what it was handed: then that is its `in`, and what else it reads is
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
// Outlined and called without a recompute, a program computes what it did, in the same order, with
// these lifetimes: what is handed to a module lives until its call ends, also where the module
// frees it, as an argument does in PyTorch; and what a module leaves behind that nobody reads or
// frees dies with it, not with the forward.
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

// `program` passes the checker, and then the result does. `modules` are named as their markers are,
// in any order; where one runs inside another that is chosen too, the outer one is outlined. A
// module that runs several times is as many segments.
// Throws std::invalid_argument, with the module's name and the line of its marker, where there is
// no such module, it is left by an exception alone, or its boundary cuts what a call cannot hand
// over: a node from its Save, or a slot's edge from its tensor.
Program outline(const Program& program, std::span<const std::string> modules);

}  // namespace ferry
