// What the CPU's own operators take of the host's time: an optimizer on the CPU, a model that is
// made there, a batch that is prepared.
//
// An operator costs what its tensors' bytes and its FLOPs take at the card file's rates of a host
// ([host]). Its call takes no time, nor does what Python does besides. Of operators within one
// another the outermost counts that has a kernel of its own.
//
// The time is that of the thread that runs the program (vgpu/time/timeline.h): the one that started
// it, and those of its backward passes. What other threads compute meanwhile (a loader's) is beside
// it and is not counted: nothing says when the program waits for them. Nor is what runs without an
// operator, as numpy.
#pragma once

namespace ferry::vgpu {

// From now on, for good; the calling thread is the program's. Once a process.
void count_host_work();

}  // namespace ferry::vgpu
