// The name of a skip tensor: a name in a namespace, so that two modules of one class, which stash
// under the same name, do not meet.
//
// Source: torchgpipe/skip/namespace.py. There a namespace is a uuid; here it is a number that the
// process gives out once. The order between namespaces is that of their making and means nothing.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry {

// Copies are the same namespace; a newly made one differs from all others.
class Namespace {
 public:
  Namespace() : id_(next_id()) {}
  // The namespace of modules that were not isolated.
  static Namespace common() { return Namespace(0); }
  auto operator<=>(const Namespace&) const = default;

 private:
  explicit Namespace(std::uint64_t id) : id_(id) {}
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t id_;
};

struct SkipName {
  SkipName(std::string text, Namespace space = Namespace::common())
      : in(space), name(std::move(text)) {}
  Namespace in;
  std::string name;
  auto operator<=>(const SkipName&) const = default;
};

}  // namespace ferry
