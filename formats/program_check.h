// Refuses a program that contradicts itself, with the line of the contradiction.
//
// An interpreter need not check again what holds afterwards:
//   * every type is a layout; every number names a global, code, node or type that is there;
//   * there is one main, without arguments or results; segments are called and bodies belong to
//     nodes, no call reaches itself, and codes are at most 200 deep in each other;
//   * what all of this does, each code as often as it runs, is within formats/limits.h;
//   * a slot of a frame is assigned once, used after that, and not after its free; it may carry an
//     edge, a tensor or both, in either order, and what needs a tensor finds one;
//   * a view lies within its storage, also where the storage came through calls, and an alias
//     within its global's, with the same dtype;
//   * counts match: a call's with its segment, a node's and its saves' with its body, once the
//     node's code is read to its end;
//   * modules and exclusions nest in each other and are closed, save where the code raises;
//   * a When's statements are there, none is under another, and it cuts no module or exclusion.
//
// All of this holds for a code as it runs first and as it runs again, each by itself: a slot that
// is assigned under a When alone is not read outside of it, and two Whens may assign one slot.
//
// Not checked: what depends on the run (whether a node is made, the sizes of gradients and of what
// a body unpacks, whether a root requires grad).
#pragma once

#include <string>

#include "formats/program.h"

namespace ferry {

// `file` names the input in errors; statements without lines (made in memory) report line 0.
void check_program(const Program& program, const std::string& file);

}  // namespace ferry
