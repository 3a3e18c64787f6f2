// Finds where in a Python program an operation was requested: "train.py:12 in step".
//
// The place is the innermost frame of the calling thread that is not in one of PyTorch's own files.
// If all frames are PyTorch's, as in a hook that FSDP runs in backward, it is the innermost one
// that does more than pass a call on (whose.h). An operator of a backward pass has no frame on its
// thread. Its place is the line that made its node in forward, found by the node's sequence number:
// "the backward of train.py:12 in step". Work of backward that belongs to no line of forward gets
// the line that called backward. A process group's own threads get the place where the latest
// collective began.
//
// Outside an operator (for an event, or the free of a block) the runtime's lock is held, so the
// interpreter's lock must not be waited for. A thread that has the interpreter's lock is asked for
// its frames; another thread gets the place of its latest operation.
//
// Not covered: graphs that are made on several threads. If sequence numbers coincide, the later
// line is named. Only the lines of the latest 262,144 nodes are known.
#pragma once

namespace ferry::vgpu {

// From now on operators know their places (vgpu/runtime/control.h). Each operator takes the
// interpreter's lock for a moment, so none may be called where that lock cannot be taken.
void find_places();

// Returns the place of an operation outside operators, or null if it is not known. It never waits.
const char* place_without_waiting();

// The calling thread's frames become the place of what it does next without the interpreter's lock.
void note_place();

// Between these two calls the calling thread is in a call of backward, and so are the threads that
// work for that backward. Call them in pairs.
void begin_backward();
void end_backward();

}  // namespace ferry::vgpu
