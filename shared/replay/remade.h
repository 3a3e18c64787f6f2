// The storages that a replay has made so far, each as a tensor on it, by number.
//
// A storage appears when the call that makes it has run again, and goes when no later call and no
// saved tensor needs it (span.h). Whoever reads one that is not there would read another tensor's
// values, or nothing: so each step says that it is there, or that it is not.
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
