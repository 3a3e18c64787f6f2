// Keeps small blocks of memory for the next request of their size, on each thread: in place of the
// standard `operator new` and `operator delete`, for the programs that link this room.
//
// A simulated run makes and drops some hundred small objects for each operation, and most of what
// one run gives back the next one takes. The C library keeps 7 blocks of a size before it looks for
// neighbours to merge them with; that took 40 % of a campaign's time. Here a thread keeps up to
// kKept bytes of each size. They come from malloc and may go back by free, on any thread.
//
// What is given back without its size (by a destructor that does not know it) goes to the C library
// at once. Programs with sanitizers do not link this: they would see no use after free. Free lists
// by size and thread are tcmalloc's idea (Ghemawat and Menage).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace ferry {
namespace {

constexpr std::size_t kStep = 16;  // sizes are multiples of it
constexpr std::size_t kLargest = 8192;
constexpr std::size_t kKept = std::size_t{128} << 10;

struct FreeBlock {
  FreeBlock* next;
};
struct Sized {
  FreeBlock* first = nullptr;
  std::size_t room = 0;  // for so many more
};

constexpr std::size_t step_of(std::size_t bytes) { return (bytes + kStep - 1) / kStep; }
constexpr std::size_t bytes_of(std::size_t step) { return std::max(step, std::size_t{1}) * kStep; }

// Is there from the start and has no destructor: it may be used before and after everything else.
struct Kept {
  constexpr Kept() {
    for (std::size_t step = 0; step < sizes.size(); ++step) {
      sizes[step].room = kKept / bytes_of(step);
    }
  }
  std::array<Sized, kLargest / kStep + 1> sizes;  // by step
  bool watched = false;                           // is given back when the thread ends
};
thread_local constinit Kept kept;

class AtThreadEnd {
 public:
  AtThreadEnd() = default;
  AtThreadEnd(const AtThreadEnd&) = delete;
  AtThreadEnd& operator=(const AtThreadEnd&) = delete;
  ~AtThreadEnd() {
    for (Sized& each : kept.sizes) {
      each.room = 0;  // what comes now is not kept
      while (each.first != nullptr) {
        FreeBlock* const block = each.first;
        each.first = block->next;
        std::free(block);
      }
    }
  }
  void begin() { kept.watched = true; }
};
thread_local AtThreadEnd at_thread_end;

void* from_the_system(std::size_t bytes) {
  for (;;) {
    if (void* const block = std::malloc(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// (Apart from what is done each time, so that that is short.)
[[gnu::noinline]] void* new_block(std::size_t bytes) {
  if (bytes > kLargest) return from_the_system(bytes);
  if (!kept.watched) at_thread_end.begin();
  return from_the_system(bytes_of(step_of(bytes)));
}

}  // namespace
}  // namespace ferry

using ferry::kept;  // what follows is everybody's

void* operator new(std::size_t bytes) {
  if (bytes > ferry::kLargest) [[unlikely]]
    return ferry::new_block(bytes);
  ferry::Sized& sized = kept.sizes[ferry::step_of(bytes)];
  ferry::FreeBlock* const block = sized.first;
  if (block == nullptr) [[unlikely]]
    return ferry::new_block(bytes);
  sized.first = block->next;
  ++sized.room;
  return block;
}

void operator delete(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (bytes > ferry::kLargest) [[unlikely]]
    return std::free(block);
  ferry::Sized& sized = kept.sizes[ferry::step_of(bytes)];
  if (sized.room == 0) [[unlikely]]
    return std::free(block);
  sized.first = new (block) ferry::FreeBlock{sized.first};
  --sized.room;
}

void operator delete(void* block) noexcept { std::free(block); }
