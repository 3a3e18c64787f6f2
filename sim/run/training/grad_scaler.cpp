#include "sim/run/training/grad_scaler.h"

#include <stdexcept>

namespace ferry::sim {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kDoubleBytes = 8;

}  // namespace

TensorList GradScaler::number(std::int64_t bytes, MemoryKind kind) {
  return {foreach_.empty(bytes, kind)};
}

TensorList GradScaler::filled(std::int64_t bytes, MemoryKind kind) {
  TensorList made = number(bytes, kind);
  foreach_.launch("full", {}, {&made});
  return made;
}

void GradScaler::make_scale() {
  if (!scale_.empty()) return;
  scale_ = filled(kFloatBytes, MemoryKind::kOptimizer);
  growth_tracker_ = filled(kFloatBytes, MemoryKind::kOptimizer);
}

void GradScaler::check(const std::vector<Gradients>& gradients, const TensorList& inverse) {
  for (const Gradients& each : gradients) {
    foreach_.launch("_amp_foreach_non_finite_check_and_unscale_",
                    {&each.list, &found_inf_, &inverse}, {&each.list, &found_inf_});
  }
}

void GradScaler::unscale(const std::vector<Gradients>& gradients) {
  for (const Gradients& each : gradients) {
    if (each.dtype != DType::kF16) continue;
    throw std::runtime_error("Attempting to unscale FP16 gradients.");
  }
  make_scale();
  // 1 / scale, in double precision. What each call returns lives until the next call has run.
  TensorList wide = number(kDoubleBytes, MemoryKind::kTemporary);
  foreach_.launch("_to_copy", {&scale_}, {&wide});
  TensorList reciprocal = number(kDoubleBytes, MemoryKind::kTemporary);
  foreach_.launch("reciprocal", {&wide}, {&reciprocal});
  drop(wide);
  const TensorList inverse = number(kFloatBytes, MemoryKind::kTemporary);
  foreach_.launch("_to_copy", {&reciprocal}, {&inverse});
  drop(reciprocal);
  found_inf_ = filled(kFloatBytes, MemoryKind::kTemporary);
  check(gradients, inverse);
}

void GradScaler::search(const std::vector<Gradients>& gradients) {
  make_scale();
  const TensorList one = filled(kFloatBytes, MemoryKind::kTemporary);
  found_inf_ = filled(kFloatBytes, MemoryKind::kTemporary);
  check(gradients, one);
}

void GradScaler::wait_for_what_was_found() {
  machine_.synchronize(Step::kUser, machine_.current_stream());
}

void GradScaler::update() {
  foreach_.launch("_amp_update_scale_", {&scale_, &growth_tracker_, &found_inf_},
                  {&scale_, &growth_tracker_});
  drop(found_inf_);
}

}  // namespace ferry::sim
