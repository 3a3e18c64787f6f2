#include "real/api/other_forwards.h"

#include "real/tensors/torch_error.h"

namespace ferry::real {

void OtherForwards::meet(const std::string& difference, bool in_sizes_alone) {
  if (here_) return;
  if (!allowed_ || !(in_sizes_alone || planned_)) throw torch_error(PlanMismatch(difference));
  here_ = true;
  ++count_;
}

void OtherForwards::end_run(bool as_planned) {
  if (as_planned && !here_) planned_ = true;
  here_ = false;
}

}  // namespace ferry::real
