// LibTorch's CUDA operators on the virtual GPU: they compute on the CPU, over the same bytes.
//
// Device memory is the host's, so a CUDA tensor can be read as a CPU tensor that begins at the same
// address. `install_kernels` puts one boxed kernel in the place of each operator's CUDA
// kernel. It finds the shapes of the results, allocates them with LibTorch's own caching allocator,
// and queues the operator's CPU kernel on the current stream (vgpu::launch), where it runs as
// late as the stream's tempo says. So LibTorch's autograd, allocator, streams and copies are its
// own, and what a program forgets to order shows as wrong bytes and in the listener's log.
//
//  * Shapes come from the operator's Meta kernel or, where LibTorch has none in C++, from the CPU
//    kernel on zeros. Where they depend on data (nonzero), everything that is queued runs first,
//    and the host waits for the stream, as it does for a GPU.
//  * LibTorch's own stay: views, empty, resize_, set_, record_stream, what reads a number
//    (_local_scalar_dense), and copy_ but for what a kernel does on a GPU.
//  * Random numbers are a CPU generator's, seeded from the CUDA generator's seed and offset, which
//    advances by four with each draw: consistent, replayable, and not a GPU's numbers.
//  * A CPU argument (a scalar, an index) is copied at the call, as CUDA reads it.
//  * What has no CPU kernel, and no way in ways.h, throws
//    `the virtual GPU does not compute aten::X`. Sparse tensors: sparse.h.
//  * An operator that fails when its turn comes (an index out of range) is an asynchronous error.
//
// Values are the CPU's to the bit; they say nothing about a GPU's arithmetic or its time.
#pragma once

#include <cstddef>

namespace ferry::vgpu {

struct Installed {
  std::size_t computed = 0;
  std::size_t refused = 0;
  std::size_t kept = 0;  // LibTorch's own
};
// Once a process, for good. Not while other threads run ops.
const Installed& install_kernels();

}  // namespace ferry::vgpu
