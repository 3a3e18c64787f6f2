// The name of a skip tensor: a text and a namespace. With namespaces, two modules of one class can
// stash under the same text.
//
// Source: torchgpipe/skip/namespace.py. There a namespace is a uuid; here it is a number that the
// process gives out once. Namespaces are ordered by when they were made, which means nothing.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry {

// A copy is the same namespace. A newly made one differs from all others.
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
