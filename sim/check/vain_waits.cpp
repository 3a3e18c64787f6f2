#include "sim/check/vain_waits.h"

namespace ferry::check {

void VainWaits::operator()(const StreamOp& op) {
  const auto event = static_cast<std::uint32_t>(op.event);
  if (op.kind == StreamOpKind::kRecord) recorded_[event] = op.stream;
  if (op.kind != StreamOpKind::kWait || op.step == Step::kUser) return;
  const auto found = recorded_.find(event);
  if (found == recorded_.end() || found->second != op.stream) return;
  complaint_ = "`" + std::string(name(op.step)) + "`: a stream waits for itself";
}

}  // namespace ferry::check
