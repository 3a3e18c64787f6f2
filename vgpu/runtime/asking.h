// Who asks for a device where there is none: a child process of `ferry run`'s script, or the
// program that it became. It inherits the preloaded runtime and the environment, but no launcher
// gives it a device. Each says so once, so that the run's last line can (vgpu/run/ending.h).
//
// Not seen: a child whose environment was made anew, without LD_PRELOAD; it finds no CUDA at all.
#pragma once

namespace ferry::vgpu {

// Adds this process's number, a line, to the file that $FERRY_VIRTUAL_GPU_ASKING names; without the
// variable or the file does nothing. A process that calls it again is not added again.
void note_asking();

}  // namespace ferry::vgpu
