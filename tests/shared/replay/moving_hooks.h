// These hooks stand around a span. They let go of what they are given, and make it again.
#pragma once

#include <cstdint>
#include <memory>

#include "shared/seam/error.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "tests/shared/replay/hand_ops.h"
#include "tests/shared/replay/span_results.h"

namespace ferry::test {

class MovingHooks final : public Hooks<sim::Tensor> {
 public:
  MovingHooks(HandOps& ops, bool declines) : ops_(ops), declines_(declines) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    ++packs;
    if (declines_) return nullptr;
    return std::make_unique<Moved>(ops_, tensor);
  }
  std::int64_t packs = 0;

 private:
  class Moved final : public Saved<sim::Tensor> {
   public:
    Moved(HandOps& ops, const sim::Tensor& tensor)
        : ops_(ops),
          is_none_(!tensor->storage),
          layout_(tensor->layout),
          version_(tensor->version),
          then_(tensor->version->value) {
      if (!is_none_) cells_ = ops.all(tensor);
    }
    sim::Tensor unpack() override {
      if (version_->value != then_)
        throw make_error<sim::Tensor>(ModifiedInPlace(version_->value, then_));
      const sim::Tensor base = ops_.make_new(SpanResults::kBytes);
      if (is_none_) base->storage = nullptr;
      if (!is_none_) ops_.set(base, cells_);
      return sim::make_tensor(base->storage, layout_, version_);
    }

   private:
    HandOps& ops_;
    const bool is_none_;
    const sim::TensorLayout layout_;
    const sim::Version version_;
    const std::uint64_t then_;
    HandOps::Cells cells_{};
  };
  HandOps& ops_;
  const bool declines_;
};

}  // namespace ferry::test
