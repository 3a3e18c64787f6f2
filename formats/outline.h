// Outlines the modules of a captured forward: each run of a chosen module becomes a code of its own
// that is called as a checkpoint, so a plan can say which of them are recomputed.
//
// The forward is the first segment that has module markers; a capture has one. Its i-th Call of a
// recompute kind is segment i. The arguments and results of such a call follow from the slots. If
// the marker names the arguments, those are its `in`, and other slots that it reads are captured.
//
//     forward            f = op a                 f = op a
//                        enter m                  call m (f, h) -> (y)
//                        t = op f, w      ==>     free h
//                        y = op t, h              op y
//                        free t, h
//                        leave m                  m (f', h') -> (y')
//                        op y                       enter m … free t', h' … leave m
//
// Without a recompute, an outlined program computes the same in the same order. Two lifetimes
// change. An argument lives until the call ends, even if the module frees it, as in PyTorch. And a
// value of the module that is never read or freed dies at the end of the call, not of the forward.
//
// Modules in bodies are not outlined, because a call would change their grad mode; nor are those in
// main, whose calls are forwards. A slot that is assigned under a When is not followed to a When on
// the other side of a module's boundary; the checker rejects such a result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/modules.h"
#include "formats/program.h"

namespace ferry {

// `program` must pass the checker; then the result does too. `modules` are names of markers, in any
// order. If two chosen modules nest, the outer one is outlined. A module that runs n times becomes
// n segments. Throws std::invalid_argument, with the module's name and the line of its marker, if
// there is no such module, if only an exception leaves it, or if its boundary separates what a call
// cannot pass: a node and its Save, or a slot's edge and its tensor.
Program outline(const Program& program, std::span<const std::string> modules);

}  // namespace ferry
