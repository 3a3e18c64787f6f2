// A checkpointed function whose recomputes read from outside what forward read
// (real/autograd/outside_reads.h), or throw CheckpointError.
#pragma once

#include <c10/core/GradMode.h>

#include <memory>
#include <utility>

#include "ferry/checkpoint.h"
#include "real/autograd/outside_reads.h"

namespace ferry::real {

// Of one call: `forward` is the function as forward calls it, `again` as recomputes do. They share
// what was read, and live as long as the graph does.
class Watched {
 public:
  // What recomputes do not compare, they do not compare here. `rethrow` may be null.
  explicit Watched(const CheckpointOptions& options, checkpoint_impl::Rethrow rethrow = nullptr)
      : rethrow_(rethrow),
        watches_(options.determinism_check() != DeterminismCheck::kNone &&
                 c10::GradMode::is_enabled()) {}

  template <class Function>
  Function forward(Function function) const {
    if (!watches_) return function;
    return [reads = reads_, function = std::move(function)](checkpoint_impl::Tensors tensors) {
      const OutsideReads::Listening listening(*reads);
      return function(std::move(tensors));
    };
  }
  template <class Function>
  Function again(Function function) const {
    if (!watches_) return function;
    return [reads = reads_, rethrow = rethrow_,
            function = std::move(function)](checkpoint_impl::Tensors tensors) {
      try {
        reads->check();
      } catch (...) {
        if (rethrow != nullptr) rethrow();
        throw;
      }
      return function(std::move(tensors));
    };
  }

 private:
  checkpoint_impl::Rethrow rethrow_;
  bool watches_;
  std::shared_ptr<OutsideReads> reads_ = std::make_shared<OutsideReads>();
};

}  // namespace ferry::real
