// The storages that a replay has made so far, by number. Each is held as a tensor on it.
//
// A storage is added when its call was replayed, and dropped when no later call and no saved tensor
// needs it (span.h). Reading a storage that is not there would give the values of another tensor,
// so each access asserts that it is there.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "shared/seam/invariant.h"

namespace ferry {

template <class Tensor>
class RemadeStorages {
 public:
  explicit RemadeStorages(std::size_t count) : made_(count) {}

  void put(std::size_t storage, Tensor tensor) {
    invariant(!made_[storage], "a replay makes a storage once");
    made_[storage].emplace(std::move(tensor));
  }
  const Tensor& at(std::size_t storage) const {
    invariant(made_[storage].has_value(), "a call that runs again finds what it reads");
    return *made_[storage];
  }
  void drop(std::size_t storage) {
    invariant(made_[storage].has_value(), "a replay drops what it has made");
    made_[storage].reset();
  }

 private:
  std::vector<std::optional<Tensor>> made_;
};

}  // namespace ferry
