// Checks that a program does not contradict itself. The error has the line of the contradiction.
//
// Afterwards the following holds, and an interpreter need not check it again:
//   * every type is a layout; every number names an existing global, code, node or type;
//   * there is one main, without arguments or results; segments are called and bodies belong to
//     nodes, no code calls itself, and codes are nested at most 200 deep;
//   * the work of all codes, counted each time that they run, is within formats/limits.h;
//   * a slot of a frame is assigned once, used after that, and not after its free; it may carry
//     an edge, a tensor or both, in either order, and each use of a tensor finds one;
//   * a view lies within its storage, even if the storage came through calls; an alias lies within
//     the storage of its global and has the same dtype;
//   * counts match: those of a call with its segment, and those of a node and its saves with its
//     body (saves are counted at the end of the node's code);
//   * modules and exclusions nest and are closed, except in code that raises;
//   * a When has as many statements as it counts, contains no other When, and contains modules and
//     exclusions only completely.
//
// All of this holds for a code both as it runs in forward and as it is recomputed. So a slot that
// is assigned only under a When is not read outside of it, and two Whens may assign the same slot.
//
// Not checked are facts that depend on the run: if a node is made, the sizes of gradients and of
// tensors that a body unpacks, and if a root requires grad.
#pragma once

#include <string>

#include "formats/program.h"

namespace ferry {

// `file` names the input in errors. Statements without lines (made in memory) report line 0.
void check_program(const Program& program, const std::string& file);

}  // namespace ferry
