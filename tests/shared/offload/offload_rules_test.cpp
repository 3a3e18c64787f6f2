#include "shared/offload/offload_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ferry {
namespace {

constexpr std::pair<Rule, bool (OffloadRules::*)() const> kQuestions[] = {
    {Rule::kKeepSource, &OffloadRules::keeps_source},
    {Rule::kBoundStash, &OffloadRules::bounds_stash},
    {Rule::kHoldTarget, &OffloadRules::holds_target},
    {Rule::kBoundReloads, &OffloadRules::bounds_reloads},
    {Rule::kCountEscapes, &OffloadRules::counts_escapes},
    {Rule::kReleaseLate, &OffloadRules::releases_late},
    {Rule::kEndOfTask, &OffloadRules::lets_go_at_end},
    {Rule::kForget, &OffloadRules::forgets_parcels},
    {Rule::kIdentity, &OffloadRules::knows_by_identity},
    {Rule::kVersioned, &OffloadRules::tells_versions},
    {Rule::kCovers, &OffloadRules::asks_for_cover},
    {Rule::kShare, &OffloadRules::shares_parcels},
    {Rule::kShareTarget, &OffloadRules::shares_targets},
    {Rule::kCheckVersion, &OffloadRules::checks_versions},
    {Rule::kExempt, &OffloadRules::exempts_parameters},
    {Rule::kKeepKept, &OffloadRules::keeps_what_is_kept},
    {Rule::kOtherDevice, &OffloadRules::keeps_other_devices},
    {Rule::kOwnerPool, &OffloadRules::waits_on_owner},
    {Rule::kHostEvents, &OffloadRules::gates_host_bytes},
    {Rule::kCopyPart, &OffloadRules::copies_part},
    {Rule::kUseSource, &OffloadRules::uses_source},
};

// So a mutant breaks the rule of its name, and no other.
TEST(OffloadRulesTest, EachQuestionIsOfOneRule) {
  for (const auto& [asked, question] : kQuestions) {
    SCOPED_TRACE(std::string(name(asked)));
    EXPECT_TRUE((OffloadRules(Rules()).*question)());
    for (const auto& [broken, other] : kQuestions) {
      EXPECT_EQ((OffloadRules(Rules::without(broken)).*question)(), broken != asked);
    }
  }
}

}  // namespace
}  // namespace ferry
