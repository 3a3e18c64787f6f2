// Reports the blocks of LibTorch's caching allocator of page-locked memory. That allocator has no
// trace, so a wrapper takes its place. The wrapper reports which block is given out and which is
// taken back (control.h, note_pinned_block), and leaves everything else to the allocator.
//
// It wraps at::HostAllocator of ATen/core/CachingHostAllocator.h.
#pragma once

namespace ferry::vgpu {

// Call it once, before page-locked memory is requested.
void tell_pinned_blocks();

}  // namespace ferry::vgpu
