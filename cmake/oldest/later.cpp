// What our compiler's static libstdc++ takes from a C library that is newer than the oldest one.
#include <cstddef>
#include <cstdint>

extern "C" {

int getentropy(void* buffer, std::size_t length);  // since glibc 2.25

#define FERRY_OURS __attribute__((visibility("hidden")))

// Since 2.32: whether counters may do without atomic operations. They need not.
FERRY_OURS char __libc_single_threaded = 0;

// Since 2.36, for std::random_device.
FERRY_OURS std::uint32_t arc4random() {
  std::uint32_t drawn = 0;
  if (getentropy(&drawn, sizeof drawn) != 0) __builtin_trap();
  return drawn;
}

}  // extern "C"
