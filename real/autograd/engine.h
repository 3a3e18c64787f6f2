// Ferry's autograd engine: LibTorch's own, with default saved-tensor hooks and an end for every
// graph task.
//
// LibTorch asks its engine for the hooks of each tensor that a node saves; the base engine has
// none, Python's looks at Python's stack. This one looks at ours (torch_autograd.h). And it
// brackets execute, so that a task's end is known whether it succeeds or fails.
//
// Installed when the library is loaded, before any backward can run: LibTorch starts its threads
// for the engine that runs first, and no other. Never destroyed: graphs in statics outlive it
// otherwise.
#pragma once

namespace ferry::real {

// Once, by whoever comes first. Cheap to call again.
void install_engine();

}  // namespace ferry::real
