// Makes a sim::Scheduler from a plain class, for published schedulers and for those of users
// (verify/include/ferry/verify.h). A scheduler is written as a class with a `pack` or with `hooks`,
// and with those other calls that it needs. If it has neither of the two, or if a call has another
// signature, the compiler says so in plain words.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "shared/seam/hooks.h"
#include "sim/gpu/tensor.h"
#include "sim/run/training/scheduler.h"

namespace ferry::sim {

template <class S>
concept Packs = requires(S& scheduler, const Tensor& tensor) {
  { scheduler.pack(tensor) } -> std::convertible_to<std::unique_ptr<Saved<Tensor>>>;
};
template <class S>
concept HasHooks = requires(S& scheduler) {
  { scheduler.hooks() } -> std::convertible_to<std::shared_ptr<Hooks<Tensor>>>;
};
template <class S>
concept TakesExempt = requires(S& scheduler, const Tensor& tensor) {
  scheduler.exempt(tensor);
};
template <class S>
concept BeginsForward = requires(S& scheduler) {
  scheduler.begin_forward();
};
template <class S>
concept Finishes = requires(S& scheduler) {
  scheduler.finish();
};
template <class S>
concept TellsEmpty = requires(const S& scheduler) {
  { scheduler.empty() } -> std::convertible_to<bool>;
};
template <class S>
concept TellsResident = requires(const S& scheduler) {
  { scheduler.resident() } -> std::convertible_to<Resident>;
};

// The class has something of that name. If the concept above does not hold then, that is a mistake.
template <class S>
concept NamesExempt = requires {
  &S::exempt;
};
template <class S>
concept NamesBeginForward = requires {
  &S::begin_forward;
};
template <class S>
concept NamesFinish = requires {
  &S::finish;
};
template <class S>
concept NamesEmpty = requires {
  &S::empty;
};
template <class S>
concept NamesResident = requires {
  &S::resident;
};

template <class S>
class Adapted final : public Scheduler {
  static_assert(Packs<S> || HasHooks<S>,
                "ferry: a scheduler has a public `std::unique_ptr<ferry::Saved<Tensor>> "
                "pack(const Tensor&)`, where Tensor is D::Tensor of its device, or "
                "`std::shared_ptr<ferry::Hooks<Tensor>> hooks()`");
  static_assert(TakesExempt<S> || !NamesExempt<S>,
                "ferry: a scheduler's `exempt` is public and takes a `const Tensor&`");
  static_assert(BeginsForward<S> || !NamesBeginForward<S>,
                "ferry: a scheduler's `begin_forward` is public and takes nothing");
  static_assert(Finishes<S> || !NamesFinish<S>,
                "ferry: a scheduler's `finish` is public and takes nothing");
  static_assert(TellsEmpty<S> || !NamesEmpty<S>,
                "ferry: a scheduler's `empty` is public: `bool empty() const`, true once it holds "
                "nothing");
  static_assert(TellsResident<S> || !NamesResident<S>,
                "ferry: a scheduler's `resident` is public: `Resident resident() const`");

 public:
  template <class... Args>
  explicit Adapted(Args&&... args) : inner_(std::forward<Args>(args)...) {}

  std::shared_ptr<Hooks<Tensor>> hooks() override {
    if constexpr (Packs<S>) {
      return std::make_shared<Pair>(inner_);
    } else {
      return inner_.hooks();
    }
  }
  void exempt(const Tensor& tensor) override {
    if constexpr (TakesExempt<S>) inner_.exempt(tensor);
  }
  void begin_forward() override {
    if constexpr (BeginsForward<S>) inner_.begin_forward();
  }
  void finish() override {
    if constexpr (Finishes<S>) inner_.finish();
  }
  bool empty() const override {
    if constexpr (TellsEmpty<S>) return inner_.empty();
    return true;  // its storages and events are counted anyway
  }
  Resident resident() const override {
    if constexpr (TellsResident<S>) return inner_.resident();
    return {};
  }

 private:
  class Pair final : public Hooks<Tensor> {
   public:
    explicit Pair(S& scheduler) : scheduler_(scheduler) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      return scheduler_.pack(tensor);
    }

   private:
    S& scheduler_;
  };

  S inner_;
};

template <class S, class... Args>
std::unique_ptr<Scheduler> adapted(Args&&... args) {
  return std::make_unique<Adapted<S>>(std::forward<Args>(args)...);
}

}  // namespace ferry::sim
