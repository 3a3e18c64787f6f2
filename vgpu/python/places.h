// Where in a Python program an operation was asked for: "train.py:12 in step".
//
// It is the innermost frame of the calling thread that is not PyTorch's own file; where all are
// PyTorch's, as those of a hook that FSDP runs in backward, the innermost that only passes a call
// on neither (its dispatcher, its wrappers). An operator of a backward pass has no frame on its
// thread: it is called by the line that made its node in forward, as "the backward of train.py:12
// in step", which nodes are matched with by their sequence number. What backward does for no line
// of forward has the line that called backward. A process
// group's own threads have the place where the latest collective was begun.
//
// Outside an operator (an event, a block's free) the interpreter's lock is not waited for, because
// the runtime's is held: a thread that has it is asked for its frames; another has the place of
// what it did last.
//
// Not covered: graphs made on several threads, whose sequence numbers coincide: the later line is
// named.
#pragma once

namespace ferry::vgpu {

// From now on operators know their places (vgpu/runtime/control.h). The interpreter's lock is taken
// for a moment by each, so no operator may be called while it cannot be had.
void find_places();

// Of an operation that is in no operator; waits for nothing. Null: nothing is known.
const char* place_without_waiting();

// The calling thread's frames are those of what it does next without the interpreter's lock.
void note_place();

// From now on, until the end, the calling thread is in a call of backward, and so is what the call
// has other threads do. In pairs.
void begin_backward();
void end_backward();

}  // namespace ferry::vgpu
