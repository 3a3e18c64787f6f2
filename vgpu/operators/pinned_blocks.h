// LibTorch's caching allocator of page-locked memory has no trace: one is put before it that says
// which block it gives out and which it takes back (control.h, note_pinned_block), and leaves all
// else to it.
//
// Source of what it stands before: at::HostAllocator of ATen/core/CachingHostAllocator.h. Pools for
// CUDA graphs are refused, as graphs are.
#pragma once

namespace ferry::vgpu {

// Once, before page-locked memory is asked for.
void tell_pinned_blocks();

}  // namespace ferry::vgpu
