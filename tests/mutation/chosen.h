// Which mutant this process is. Every mutant of the core is in one program; the environment says
// which one is run.
//
// FERRY_MUTANT=17 is mutant 17; none, and the core is itself. FERRY_MUTANT=-1 is the core itself,
// too, and writes to the file FERRY_MUTANTS_REACHED which mutants' places it came by: no run that
// passes none of a mutant's places can show it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::mutation {

inline constexpr int kReached = -1;
inline constexpr std::size_t kMutantsMax = std::size_t{1} << 16;

// The numbers that came by, written when the process ends.
class Reached {
 public:
  Reached() : numbers_(kMutantsMax) {}
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;
  ~Reached() {
    const char* path = std::getenv("FERRY_MUTANTS_REACHED");
    if (!path) return;
    std::ofstream file(path);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i]) file << i << '\n';
    }
  }
  void add(int number) { numbers_[static_cast<std::size_t>(number)] = true; }

 private:
  std::vector<std::atomic<bool>> numbers_;
};

inline void note(int number) {
  static Reached reached;
  reached.add(number);
}

inline int from_environment() {
  const char* text = std::getenv("FERRY_MUTANT");
  return text ? std::atoi(text) : 0;
}
inline const int chosen = from_environment();

inline bool is(int number) {
  if (chosen < 0) [[unlikely]]
    note(number);
  return chosen == number;
}

// In a constexpr function: what is computed by the compiler is no mutant's.
constexpr bool is_at_run_time(int number) {
  if (std::is_constant_evaluated()) return false;
  return is(number);
}

// Two arguments may be swapped where their types are equal.
template <class A, class B>
requires std::is_same_v<std::remove_cvref_t<A>, std::remove_cvref_t<B>>
constexpr bool alike() { return true; }

// A guard of a scope that is not there in mutant `number`.
template <class Make>
class Unless {
 public:
  using Guard = decltype(std::declval<Make&>()());
  Unless(int number, Make make) : here_(!is(number)) {
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
