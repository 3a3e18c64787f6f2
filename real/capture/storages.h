// Numbers storages in order of appearance, and reports which have died.
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
  // Its number; an unknown storage gets a new one, of this birth.
  StorageNumber number(const c10::Storage& storage, Birth birth, bool in_backward);
  // The storages that have died since the last call, in order.
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

// Throws CaptureError, naming `who`, for no window on a storage, or a dtype without a name.
void require_plain(const at::Tensor& tensor, const std::string& who);
// Takes a plain tensor.
Layout layout_of(const at::Tensor& tensor);

}  // namespace ferry::real::capture
