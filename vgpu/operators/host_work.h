// Counts the host's time for operators that the CPU computes: an optimizer on the CPU, a model that
// is made there, a batch that is prepared.
//
// An operator takes the time that the bytes of its tensors and its FLOPs need, at the host's rates
// in the card's file ([host]; none without these rates). The call itself takes no time, nor does
// anything else that Python does. If operators are nested, the outermost one with a kernel of its
// own counts.
//
// Only the program's own threads count (vgpu/time/timeline.h): the one that called count_host_work,
// and those of its backward passes. What other threads compute meanwhile, such as a data loader's,
// is not counted, because nothing says when the program waits for them. Work without an operator,
// such as numpy's, is not counted either.
#pragma once

namespace ferry::vgpu {

// Starts counting, for the rest of the process. The calling thread is the program's. Call it once.
void count_host_work();

}  // namespace ferry::vgpu
