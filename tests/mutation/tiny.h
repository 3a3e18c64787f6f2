// A source with a place for each kind of mutant; mutation_test.py makes, compiles and runs them.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tiny {

// A mutex that tells whether it is held.
struct Told {
  void lock() { held = true; }
  void unlock() { held = false; }
  bool held = false;
};

template <class T>
class Log {
 public:
  void add(T value) {
    const std::lock_guard lock(mutex_);
    seen_held_ = mutex_.held;
    if (value < 0) return;
    if (const auto [entry, is_new] = counts_.try_emplace(value, 1); !is_new) ++entry->second;
    sum_ += value;
  }
  T pick(T a, T b) const { return a > 10 && b > 10 ? std::min(a, b) : a - b; }
  T pair(const std::string& name, T a, T b) const { return pick(a * 2, b) + length(name); }
  T same(T a, T b) const { return 5 * (a == b) + 1; }
  bool has(T value) const { return counts_.count(value) == 1; }
  bool held() const { return seen_held_; }
  T total() const {
    T all = 0;
    for (const auto& [value, count] : counts_) {
      if (value == 7) continue;
      all += value * count;
    }
    return all + sum_;
  }

 private:
  static T length(const std::string& name) {
    if (auto at = name.find('x')) return static_cast<T>(at);
    return -1;
  }

  Told mutex_;
  bool seen_held_ = false;
  std::map<T, int> counts_;
  T sum_ = 0;
};

inline std::string text() {
  Log<int> log;
  for (const int value : {3, 7, 3, -5, 0, 5}) log.add(value);
  const std::vector<int> all = {log.pick(11, 12),    log.pick(11, 10), log.pick(10, 11),
                                log.same(4, 4),      log.same(4, 5),   log.pair("ax", 6, 30),
                                log.pair("x", 2, 3), log.total(),      log.has(3),
                                log.has(4),          log.held(),       log.has(0)};
  std::string out;
  for (const int value : all) out += std::to_string(value) + " ";
  return out;
}

}  // namespace tiny
