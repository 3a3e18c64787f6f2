// The calling thread's Python frames, as a place: "train.py:12 in step".
#pragma once

#include <string>

namespace ferry::vgpu {

// The text itself, each once, for as long as the process lives.
const std::string* keep_text(std::string text);

// The innermost frame of the program or, where all are PyTorch's, the innermost of those that do
// more than pass a call on (whose.h). Those that called backward are not those of its nodes. Null:
// the thread has none. Waits for the interpreter's lock.
const std::string* place_of_frames();

// The same, under any lock: null, too, where the calling thread has not the interpreter's.
const std::string* place_of_frames_without_waiting();

}  // namespace ferry::vgpu
