// A checkpointed function whose recomputes check their reads from outside: if a tensor changed
// since forward read it, they throw CheckpointError (real/autograd/outside_reads.h).
#pragma once

#include <c10/core/GradMode.h>

#include <memory>
#include <utility>

#include "ferry/checkpoint.h"
#include "real/autograd/outside_reads.h"

namespace ferry::real {

// For one call: `forward` wraps the function for forward, `again` for recomputes. They share the
// list of reads, and live as long as the graph.
class Watched {
 public:
  // With DeterminismCheck::kNone nothing is checked. `rethrow` may be null.
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
