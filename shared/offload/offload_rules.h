// The rules of the offloader, with a name for each place in its code that asks. shared/seam/rules.h
// says what each rule means. All are true, except in a mutant.
#pragma once

#include "shared/seam/rules.h"

namespace ferry {

class OffloadRules : public Rules {
 public:
  OffloadRules(const Rules& rules) : Rules(rules) {}  // NOLINT(google-explicit-constructor)

  bool keeps_source() const { return holds(Rule::kKeepSource); }
  bool bounds_stash() const { return holds(Rule::kBoundStash); }
  bool holds_target() const { return holds(Rule::kHoldTarget); }
  bool bounds_reloads() const { return holds(Rule::kBoundReloads); }
  bool counts_escapes() const { return holds(Rule::kCountEscapes); }
  bool releases_late() const { return holds(Rule::kReleaseLate); }
  bool lets_go_at_end() const { return holds(Rule::kEndOfTask); }
  bool forgets_parcels() const { return holds(Rule::kForget); }
  bool knows_by_identity() const { return holds(Rule::kIdentity); }
  bool tells_versions() const { return holds(Rule::kVersioned); }
  bool asks_for_cover() const { return holds(Rule::kCovers); }
  bool shares_parcels() const { return holds(Rule::kShare); }
  bool shares_targets() const { return holds(Rule::kShareTarget); }
  bool checks_versions() const { return holds(Rule::kCheckVersion); }
  bool exempts_parameters() const { return holds(Rule::kExempt); }
  bool keeps_what_is_kept() const { return holds(Rule::kKeepKept); }
  bool keeps_other_devices() const { return holds(Rule::kOtherDevice); }
  bool waits_on_owner() const { return holds(Rule::kOwnerPool); }
  bool gates_host_bytes() const { return holds(Rule::kHostEvents); }
  bool copies_part() const { return holds(Rule::kCopyPart); }
  bool uses_source() const { return holds(Rule::kUseSource); }
};

}  // namespace ferry
