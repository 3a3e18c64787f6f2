// Notes each process that asks for a CUDA device and has none: a child process of `ferry run`'s
// script, or the program that the script turned into with exec. Such a process inherits the
// preloaded runtime and the environment, but no launcher gives it a device. It notes itself once,
// and the run's last line counts it (vgpu/run/ending.h).
//
// A child that was started with a new environment, without LD_PRELOAD, is not noticed. It finds no
// CUDA at all.
#pragma once

namespace ferry::vgpu {

// Appends this process's number, as a line, to the file that $FERRY_VIRTUAL_GPU_ASKING names. Does
// nothing if the variable or the file is missing, or if this process has called it before.
void note_asking();

}  // namespace ferry::vgpu
