// What would order two accesses, or mend a lifetime: one phrase for a hazard.
//
// Of the core's own accesses, the step that is missing; of other programs', the calls: an event
// recorded after the one and waited for before the other, a synchronisation, a token between host
// threads, a record_use before the free.
#pragma once

#include <string>

#include "sim/check/hazard.h"

namespace ferry::check {

// How a hazard's accesses are called: by number here, and as a log has them where it has names.
class AccessNames {
 public:
  virtual ~AccessNames() = default;
  virtual std::string op(const HazardAccess& access) const;     // "#41"
  virtual std::string place(const HazardAccess& access) const;  // "stream 2", "the host"
};

std::string advice(const Hazard& hazard, const AccessNames& names = AccessNames());

}  // namespace ferry::check
