// Numbers storages in order of appearance, and reports which have died.
//
// A storage is identified by the address of its StorageImpl. A weak reference prevents the reuse of
// that address, but not the release of the bytes. If the size of a storage has changed (an out= op
// resizes), it counts as a new one, and the old one as dead.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "real/capture/trace.h"

namespace ferry::real::capture {

class Storages {
 public:
  explicit Storages(std::vector<StorageInfo>& infos) : infos_(infos) {}

  bool knows(const c10::Storage& storage) const;
  // Returns the number of the storage. An unknown one gets a new number, with this birth.
  StorageNumber number(const c10::Storage& storage, Birth birth, bool in_backward);
  // Returns the storages that have died since the last call, in order.
  std::vector<StorageNumber> died();

 private:
  struct Live {
    c10::StorageImpl* impl = nullptr;
    c10::weak_intrusive_ptr<c10::StorageImpl> weak;
  };

  std::vector<StorageInfo>& infos_;
  std::unordered_map<const c10::StorageImpl*, StorageNumber> numbers_;  // looked up, never iterated
  std::map<StorageNumber, Live> live_;
  std::vector<StorageNumber> resized_;
};

// Throws CaptureError, with the name `who`, if the tensor is not just a view of a storage, or if
// its dtype has no name in programs.
void require_plain(const at::Tensor& tensor, const std::string& who);
// The tensor must be plain.
Layout layout_of(const at::Tensor& tensor);

}  // namespace ferry::real::capture
