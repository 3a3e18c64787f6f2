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
  FreeBlock* first;
  std::size_t bytes;
};

// Has no constructor and no destructor: it may be used before and after everything else.
struct Kept {
  Sized sizes[kLargest / kStep + 1];
  bool watched;  // is given back when the thread ends
  bool ended;
};
thread_local constinit Kept kept{};

class AtThreadEnd {
 public:
  AtThreadEnd() = default;
  AtThreadEnd(const AtThreadEnd&) = delete;
  AtThreadEnd& operator=(const AtThreadEnd&) = delete;
  ~AtThreadEnd() {
    kept.ended = true;
    for (Sized& each : kept.sizes) {
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

std::size_t step_of(std::size_t bytes) { return bytes == 0 ? 1 : (bytes + kStep - 1) / kStep; }

void* from_the_system(std::size_t bytes) {
  for (;;) {
    if (void* const block = std::malloc(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace
}  // namespace ferry

using ferry::kept;  // what follows is everybody's

void* operator new(std::size_t bytes) {
  if (bytes > ferry::kLargest) return ferry::from_the_system(bytes);
  const std::size_t step = ferry::step_of(bytes);
  ferry::Sized& sized = kept.sizes[step];
  if (ferry::FreeBlock* const block = sized.first) {
    sized.first = block->next;
    sized.bytes -= step * ferry::kStep;
    return block;
  }
  if (!kept.watched) ferry::at_thread_end.begin();
  return ferry::from_the_system(step * ferry::kStep);
}

void operator delete(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const std::size_t step = ferry::step_of(bytes);
  if (bytes > ferry::kLargest || kept.ended || kept.sizes[step].bytes >= ferry::kKept)
    return std::free(block);
  ferry::Sized& sized = kept.sizes[step];
  sized.first = new (block) ferry::FreeBlock{sized.first};
  sized.bytes += step * ferry::kStep;
}

void operator delete(void* block) noexcept { std::free(block); }
