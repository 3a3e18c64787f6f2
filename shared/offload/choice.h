// Decides which saved tensors are offloaded, and which of their bytes; OffloadCore asks it for each
// pack. Also makes the key by which saves of the same bytes find one copy.
//
// These stay where they are: tensors of other devices, tensors below min_bytes, those that
// CoreOptions::offload (if it is not empty) does not list, those of a storage that Ferry keeps
// anyway (tracker.h), and exempt ones (exempt.h).
#pragma once

#include <cstdint>

#include "shared/offload/context.h"
#include "shared/offload/exempt.h"
#include "shared/offload/tracker.h"

namespace ferry {

template <Device D>
class Choice {
 public:
  using Tensor = typename D::Tensor;
  using Storage = typename D::Storage;

  Choice(Context<D>& context, const Tracker<D>& tracker)
      : context_(context), tracker_(tracker), exempt_(context) {}

  void exempt(const Tensor& tensor, Bin<D>& bin) { exempt_.add(tensor, bin); }

  // Returns the bytes to copy for a view: its whole storage, or only its part if the view is small
  // and the storage is large. The part begins at an aligned offset, so the restored view is aligned
  // too.
  Extent travelling(const Tensor& tensor, const Storage& storage) {
    constexpr std::int64_t kAlignment = 512;
    constexpr std::int64_t kLarge = std::int64_t{1} << 20;
    const std::int64_t whole = context_.device.bytes(storage);
    Extent part = context_.device.extent(context_.device.layout(tensor));
    part.begin -= part.begin % kAlignment;
    if (whole < kLarge || part.bytes() > whole / 2 || !context_.rules.copies_part()) {
      return {0, whole};
    }
    return part;
  }

  // True if the tensor is to be offloaded. `pack` is the ordinal of the pack in the run. An empty
  // extent means that the tensor is on another device or has no bytes.
  bool wants(const Tensor& tensor, const Storage& storage, const Extent& extent, std::uint64_t pack,
             Bin<D>& bin) {
    const CoreOptions& options = context_.options;
    if (extent.bytes() < options.min_bytes || extent.bytes() == 0) return false;
    if (!options.offload.empty() && (pack >= options.offload.size() || !options.offload[pack])) {
      return false;
    }
    if (context_.rules.keeps_what_is_kept() && tracker_.keeps(context_.device.identity(storage))) {
      return false;
    }
    return !context_.rules.exempts_parameters() || !exempt_.has(tensor, storage, bin);
  }

  // Returns the key of the parcel. Saves of the same bytes have equal keys.
  ParcelKey key(const Tensor& tensor, const Storage& storage) {
    D& device = context_.device;
    const typename D::Version version = device.version(tensor);
    return {context_.rules.knows_by_identity() ? device.identity(storage) : device.address(storage),
            device.identity(version), context_.rules.tells_versions() ? device.read(version) : 0,
            device.address(storage)};
  }

 private:
  Context<D>& context_;
  const Tracker<D>& tracker_;
  Exempt<D> exempt_;
};

}  // namespace ferry
