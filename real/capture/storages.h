// Numbers storages as they are met, and tells which have died.
//
// A storage is known by the address of its StorageImpl, which a weak reference keeps from being
// given to another; its bytes go when the program drops it. One whose size changed (an out= op
// resizes) is taken for another: the old one has died.
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
  // Its number: a new one, of this birth, where it is not known.
  StorageNumber number(const c10::Storage& storage, Birth birth, bool in_backward);
  // Those that have died since the last call, in order.
  std::vector<StorageNumber> died();

 private:
  struct Live {
    c10::StorageImpl* impl = nullptr;
    c10::weak_intrusive_ptr<c10::StorageImpl> weak;
  };

  std::vector<StorageInfo>& infos_;
  std::unordered_map<const c10::StorageImpl*, StorageNumber> numbers_;  // never walked
  std::map<StorageNumber, Live> live_;
  std::vector<StorageNumber> resized_;
};

// Throws CaptureError, naming `who`, for what is no window on a storage or has no name in a file.
void require_plain(const at::Tensor& tensor, const std::string& who);
// Of a plain tensor.
Layout layout_of(const at::Tensor& tensor);

}  // namespace ferry::real::capture
