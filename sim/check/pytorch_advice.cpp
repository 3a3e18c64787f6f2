#include "sim/check/pytorch_advice.h"

#include "sim/check/report_json.h"

namespace ferry::check {

std::string pytorch_advice(const Hazard& hazard, const AccessNames& names) {
  const HazardAccess &from = hazard.earlier, &to = hazard.later;
  const Place place = place_of(to.name);
  const bool python = place.file.ends_with(".py") || place.file.ends_with(".ipynb");
  if (!is_race(hazard.kind) || from.by_host || !python) return "";
  const std::string before = " before " + place.file + ":" + std::to_string(place.line);
  const std::string s = ", where s is " + names.place(from);
  const std::string wait = to.by_host ? "s.synchronize()" + before
                                      : "torch.cuda.current_stream().wait_stream(s)" + before;
  const bool freed = hazard.kind == HazardKind::kReuse || hazard.kind == HazardKind::kFreeUnderUse;
  // An allocation is not a use of the tensor, so record_stream would not help.
  if (freed && from.kind != StreamOpKind::kAlloc) {
    return "t.record_stream(s) before the tensor t is freed, or " + wait + s;
  }
  return wait + s;
}

}  // namespace ferry::check
