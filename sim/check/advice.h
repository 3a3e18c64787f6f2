// Advice on a hazard, in one phrase: the calls that would order two accesses, or mend a lifetime.
//
// For the core's own accesses it names the missing step; for other programs' the calls: an event
// recorded after the one and waited for before the other, a synchronisation, a token between host
// threads, a record_use before the free.
#pragma once

#include <string>

#include "sim/check/hazard.h"

namespace ferry::check {

// The names of a hazard's accesses: numbers here, the log's own names where it has some.
class AccessNames {
 public:
  virtual ~AccessNames() = default;
  virtual std::string op(const HazardAccess& access) const;     // "#41"
  virtual std::string place(const HazardAccess& access) const;  // "stream 2", "the host"
};

std::string advice(const Hazard& hazard, const AccessNames& names = AccessNames());

}  // namespace ferry::check
