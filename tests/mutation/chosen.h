// Which mutant this process is. Every mutant of the core is in one program; the environment says
// which one is run.
//
// FERRY_MUTANT=17 is mutant 17; none, and the core is itself. FERRY_MUTANT=-1 is the core itself,
// too, and notes which mutants' places it comes by (noted_tests.cpp, hunt.cpp): no run that passes
// none of a mutant's places can show it.
//
// With -DFERRY_MUTATION_FIXED=17,18 the compiler knows that it is these two, as if they were
// written: so their object code can be compared with the core's (equivalents.py). =0: none.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::mutation {

inline constexpr std::size_t kMutantsMax = std::size_t{1} << 16;

// The numbers that came by, since they were last taken: in this process, or in one that it forked
// since then, as a test of an assertion does.
class Reached {
 public:
  Reached() {
    void* const shared = ::mmap(nullptr, kMutantsMax * sizeof(*numbers_), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) std::abort();
    numbers_ = static_cast<std::atomic<bool>*>(shared);  // all zero
  }
  void add(int number) { numbers_[static_cast<std::size_t>(number)] = true; }
  std::vector<int> take() {
    std::vector<int> taken;
    for (std::size_t i = 0; i < kMutantsMax; ++i) {
      if (!numbers_[i]) continue;
      numbers_[i] = false;
      taken.push_back(static_cast<int>(i));
    }
    return taken;
  }

 private:
  std::atomic<bool>* numbers_ = nullptr;  // for as long as the process lives
};

inline Reached& reached() {
  static Reached reached;
  return reached;
}

#ifdef FERRY_MUTATION_FIXED
consteval bool is(int number) {
  for (const int fixed : {FERRY_MUTATION_FIXED}) {
    if (fixed == number) return true;
  }
  return false;
}
consteval bool is_at_run_time(int number) { return is(number); }
#else
inline int from_environment() {
  const char* text = std::getenv("FERRY_MUTANT");
  return text ? std::atoi(text) : 0;
}
inline const int chosen = from_environment();

inline bool is(int number) {
  if (chosen < 0) [[unlikely]]
    reached().add(number);
  return chosen == number;
}

// In a constexpr function: what is computed by the compiler is no mutant's.
constexpr bool is_at_run_time(int number) {
  if (std::is_constant_evaluated()) return false;
  return is(number);
}
#endif

// Two arguments may be swapped where their types are equal.
template <class A, class B>
requires std::is_same_v<std::remove_cvref_t<A>, std::remove_cvref_t<B>>
constexpr bool alike() { return true; }

// A guard of a scope, unless it is gone in the mutant.
template <class Make>
class Unless {
 public:
  using Guard = decltype(std::declval<Make&>()());
  Unless(bool gone, Make make) : here_(!gone) {
    if (here_) ::new (static_cast<void*>(bytes_)) Guard(make());
  }
  Unless(const Unless&) = delete;
  Unless& operator=(const Unless&) = delete;
  ~Unless() noexcept(false) {
    if (here_) std::destroy_at(std::launder(reinterpret_cast<Guard*>(bytes_)));
  }

 private:
  bool here_;
  alignas(Guard) std::byte bytes_[sizeof(Guard)];
};

}  // namespace ferry::mutation
