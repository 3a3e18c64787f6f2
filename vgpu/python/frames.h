// Finds a place in the calling thread's Python frames, such as "train.py:12 in step" or
// "model.py:30 in Block.forward", for places.h.
// A place is the text that the stream log has for an operation.
#pragma once

#include <string>

namespace ferry::vgpu {

// Returns the only copy of this text, which lives as long as the process.
const std::string* keep_text(std::string text);

// Returns the place of the innermost frame of the program or, if all frames are PyTorch's, of the
// innermost one that does more than pass a call on (whose.h). Frames that called backward do not
// count for backward's nodes. Returns null if the thread has no such frame. Waits for the
// interpreter's lock.
const std::string* place_of_frames();

// The same without waiting, so that it can be called under any lock. Returns null, too, if the
// calling thread does not have the interpreter's lock.
const std::string* place_of_frames_without_waiting();

}  // namespace ferry::vgpu
