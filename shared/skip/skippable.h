// The skip tensors that layers declare, and the check that their declarations match.
//
// Source: torchgpipe/skip/skippable.py, with its messages.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shared/seam/error.h"
#include "shared/skip/namespace.h"
#include "shared/skip/skip_rules.h"

namespace ferry {

// Declarations clash, or a layer did not do what it declared.
class SkipError : public Error {
 public:
  using Error::Error;
};

// The declarations of one layer.
struct Skippable {
  std::string layer;
  std::vector<SkipName> stashes;
  std::vector<SkipName> pops;
};

// Throws SkipError unless every stash has exactly one pop, in a later layer and in the same
// namespace. A layer must not pop what it stashes itself.
inline void verify_skippables(std::span<const Skippable> layers, const SkipRules& rules = Rules()) {
  std::set<SkipName> stashed;
  std::set<SkipName> popped;
  std::vector<std::string> faults;
  const auto has = [](const std::vector<SkipName>& names, const SkipName& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Skippable& layer : layers) {
    const auto fault = [&](const SkipName& name, const std::string& what) {
      faults.push_back("'" + layer.layer + "' " + what.substr(0, what.find('%')) + "'" + name.name +
                       "'" + what.substr(what.find('%') + 1));
    };
    for (const SkipName& name : layer.stashes) {
      if (has(layer.pops, name)) {
        fault(name, "declared % both as stashable and as poppable");
      } else if (!stashed.insert(name).second) {
        fault(name, "redeclared % as stashable but not isolated by namespace");
      }
    }
    for (const SkipName& name : layer.pops) {
      if (has(layer.stashes, name)) continue;
      if (popped.contains(name)) {
        fault(name, "redeclared % as poppable but not isolated by namespace");
      } else if (!stashed.contains(name)) {
        fault(name, "declared % as poppable but it was not stashed");
      } else {
        popped.insert(name);
      }
    }
  }
  for (const SkipName& name : stashed) {
    if (popped.contains(name) || !rules.wants_pops()) continue;
    faults.push_back("no module declared '" + name.name + "' as poppable but stashed");
  }
  if (faults.empty()) return;
  std::string text = "one or more pairs of stash and pop do not match:\n";
  for (const std::string& fault : faults) text += "\n* " + fault;
  throw make_error<void>(SkipError(text));
}

}  // namespace ferry
