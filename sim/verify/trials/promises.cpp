#include "sim/verify/trials/promises.h"

#include "sim/choices/draws.h"
#include "sim/verify/trials/adaptors.h"
#include "sim/verify/trials/again.h"
#include "sim/verify/trials/calls.h"
#include "sim/verify/trials/counts.h"
#include "sim/verify/trials/defaults.h"
#include "sim/verify/trials/groups.h"
#include "sim/verify/trials/layouts.h"
#include "sim/verify/trials/offloader_by_hand.h"
#include "sim/verify/trials/refusals.h"
#include "sim/verify/trials/shapes.h"

namespace ferry::verify {

std::optional<Verdict> judge_promises(std::uint64_t seed) {
  if (auto wrong = judge_refusals()) return wrong;
  if (auto wrong = judge_defaults()) return wrong;
  if (auto wrong = judge_counting()) return wrong;
  choices::Draws draws(seed);
  if (auto wrong = judge_shapes(draws)) return wrong;
  if (auto wrong = judge_layouts(draws)) return wrong;
  if (auto wrong = judge_recomputes(draws)) return wrong;
  if (auto wrong = judge_calls(draws)) return wrong;
  if (auto wrong = judge_groups(draws)) return wrong;
  if (auto wrong = judge_adaptors(draws)) return wrong;
  return judge_offloader(draws);
}

}  // namespace ferry::verify
