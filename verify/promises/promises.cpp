#include "verify/promises/promises.h"

#include "sim/choices/draws.h"
#include "verify/promises/adaptors.h"
#include "verify/promises/again.h"
#include "verify/promises/calls.h"
#include "verify/promises/counts.h"
#include "verify/promises/defaults.h"
#include "verify/promises/groups.h"
#include "verify/promises/layouts.h"
#include "verify/promises/offloader_by_hand.h"
#include "verify/promises/refusals.h"
#include "verify/promises/shapes.h"

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
