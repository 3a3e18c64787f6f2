// LibTorch's CUDA operators on the virtual GPU. They compute on the CPU, over the same bytes.
//
// Device memory is host memory, so a CUDA tensor can be read as a CPU tensor that begins at the
// same address. `install_kernels` puts one boxed kernel in place of each operator's CUDA kernel.
// The boxed kernel finds the shapes of the results, allocates them with LibTorch's own caching
// allocator, and queues the operator's CPU kernel on the current stream (vgpu::launch). There it
// runs as late as the stream's tempo says. So LibTorch's autograd, allocator, streams and copies
// are its own, and a missing wait of the program shows as wrong bytes and in the listener's log.
//
//  * Shapes come from the operator's Meta kernel or, if LibTorch has none in C++, from the CPU
//    kernel on zeros. If they depend on data (nonzero), everything that is queued runs first, and
//    the host waits for the stream, as it does for a GPU.
//  * LibTorch's own code stays for views, empty, resize_, set_, record_stream, the reading of a
//    number (_local_scalar_dense), and for copies that need no kernel on a GPU.
//  * Random numbers are a CPU generator's. Its seed comes from the CUDA generator's seed and
//    offset, and the offset advances by four with each draw. The numbers are consistent and
//    replayable, but not a GPU's.
//  * A CPU argument (a scalar, an index) is copied at the call, because CUDA reads it then.
//  * An operator that has neither a CPU kernel nor a substitute in ways.h throws `the virtual GPU
//    does not compute aten::X`. Sparse tensors are in sparse.h.
//  * An operator that fails when its turn comes (an index out of range) is an asynchronous error.
//
// Values are the CPU's to the bit; they say nothing about a GPU's arithmetic or its time.
#pragma once

#include <cstddef>

namespace ferry::vgpu {

struct Installed {
  std::size_t computed = 0;
  std::size_t refused = 0;
  std::size_t kept = 0;  // LibTorch's own kernel stays
};
// Call it once a process; it stays in force. No other thread may run operators meanwhile.
const Installed& install_kernels();

}  // namespace ferry::vgpu
