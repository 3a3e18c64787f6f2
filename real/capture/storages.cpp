#include "real/capture/storages.h"

#include <algorithm>
#include <utility>

#include "ferry/capture.h"
#include "real/tensors/dtype.h"
#include "real/tensors/torch_error.h"
#include "real/tensors/torch_tensors.h"

namespace ferry::real::capture {

bool Storages::knows(const c10::Storage& storage) const {
  const auto found = numbers_.find(storage.unsafeGetStorageImpl());
  return found != numbers_.end() &&
         infos_[found->second].bytes == static_cast<std::int64_t>(storage.nbytes());
}

StorageNumber Storages::number(const c10::Storage& storage, Birth birth, bool in_backward) {
  c10::StorageImpl* const impl = storage.unsafeGetStorageImpl();
  const auto found = numbers_.find(impl);
  if (found != numbers_.end()) {
    if (knows(storage)) return found->second;
    resized_.push_back(found->second);
    live_.erase(found->second);
    numbers_.erase(found);
  }
  const auto number = static_cast<StorageNumber>(infos_.size());
  infos_.push_back({.bytes = static_cast<std::int64_t>(storage.nbytes()),
                    .birth = birth,
                    .in_backward = in_backward,
                    .died = false,
                    .died_in = {}});
  numbers_.emplace(impl, number);
  live_.emplace(number, Live{impl, storage.getWeakStorageImpl()});
  return number;
}

std::vector<StorageNumber> Storages::died() {
  std::vector<StorageNumber> dead = std::exchange(resized_, {});
  for (auto each = live_.begin(); each != live_.end();) {
    if (!each->second.weak.expired()) {
      ++each;
      continue;
    }
    dead.push_back(each->first);
    numbers_.erase(each->second.impl);
    each = live_.erase(each);
  }
  std::sort(dead.begin(), dead.end());
  return dead;
}

void require_plain(const at::Tensor& tensor, const std::string& who) {
  if (!TorchTensors::plain(tensor)) {
    throw torch_error(CaptureError(who +
                                   " works on a tensor that is no plain window on a storage (" +
                                   tensor.toString() + "): it cannot be captured"));
  }
  if (!to_dtype(tensor.scalar_type())) {
    throw torch_error(CaptureError(who + " works on a tensor of dtype " +
                                   c10::toString(tensor.scalar_type()) +
                                   ", which has no name in a program"));
  }
}

Layout layout_of(const at::Tensor& tensor) {
  return {.dtype = *to_dtype(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .offset = tensor.storage_offset()};
}

}  // namespace ferry::real::capture
