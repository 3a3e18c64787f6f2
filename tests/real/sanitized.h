// Whether a sanitizer's allocator is at work: it keeps what is freed, ends the program where there
// is no more, and needs the address space. What measures memory does without it.
#pragma once

namespace ferry::real {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace ferry::real
