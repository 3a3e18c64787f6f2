#include "tests/shared/offload/host_heap.h"

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace ferry::test {
namespace {

constexpr std::int64_t kPlenty = std::numeric_limits<std::int64_t>::max();
thread_local std::int64_t allocations_left = kPlenty;

}  // namespace

HeapGivesOut::HeapGivesOut(std::int64_t after) noexcept { allocations_left = after; }
HeapGivesOut::~HeapGivesOut() { allocations_left = kPlenty; }

HeapSpares::HeapSpares() noexcept : before_(std::exchange(allocations_left, kPlenty)) {}
HeapSpares::~HeapSpares() { allocations_left = before_; }

}  // namespace ferry::test

void* operator new(std::size_t bytes) {
  std::int64_t& left = ferry::test::allocations_left;
  if (left != ferry::test::kPlenty && left-- <= 0) throw std::bad_alloc();
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
