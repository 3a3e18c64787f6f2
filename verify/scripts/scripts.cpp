#include "verify/scripts/scripts.h"

#include "verify/scripts/cache_script.h"
#include "verify/scripts/region_script.h"
#include "verify/scripts/segment_script.h"
#include "verify/scripts/span_script.h"

namespace ferry::verify {

std::optional<Verdict> try_script(const DrawnUses& uses, const Rules& rules,
                                  StreamOpConsumer* watch) {
  const int kind = uses.number % 8;
  if (kind < 3) return try_segment_script(uses, rules, watch);
  if (kind < 6) return try_span_script(uses, rules, watch);
  return kind == 6 ? try_region_script(uses, rules) : try_cache_script(uses, rules);
}

}  // namespace ferry::verify
