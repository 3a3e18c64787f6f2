// Advice on a hazard, in one phrase: the calls that would order two accesses or correct a lifetime.
//
// For accesses of Ferry's core, the advice names the step that is missing. For other programs it
// names calls: record an event after the first access and wait for it before the second,
// synchronise, pass a token between host threads, or call record_use before the free. It is not
// tried out: another mistake may remain.
#pragma once

#include <string>

#include "sim/check/hazard.h"

namespace ferry::check {

// Names the accesses of a hazard. This class uses numbers; a subclass can use the names of a log.
class AccessNames {
 public:
  virtual ~AccessNames() = default;
  virtual std::string op(const HazardAccess& access) const;     // "#41"
  virtual std::string place(const HazardAccess& access) const;  // "stream 2", "the host"
};

// Returns the advice; empty if there is none for this kind of hazard.
std::string advice(const Hazard& hazard, const AccessNames& names = AccessNames());

}  // namespace ferry::check
