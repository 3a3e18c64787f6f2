// Finds the times of a program's ops in a profile (formats/profile.h), for `ferry plan --times`.
// The time of a call is the sum of its kernels' times.
//
// A profile has the inputs of an op but not its results, and a program does not have the layout of
// a gradient that a backward gets. So a call matches an op if it has the same name, the same number
// of tensors, and every shape and dtype that both state. If different calls match, only those that
// read as many bytes as the op remain. If these still differ, no time is taken.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/profile.h"
#include "scenarios/op_signature.h"

namespace ferry {

class ProfiledTimes {
 public:
  void add(const std::vector<ProfiledCall>& calls);

  // Returns the median time of the calls that match the op.
  std::optional<std::int64_t> find(OpSignature op) const;

 private:
  using Calls = std::map<std::vector<ProfiledInput>, std::vector<std::int64_t>>;  // times by inputs
  std::map<std::string, Calls, std::less<>> calls_;                               // by name
};

}  // namespace ferry
