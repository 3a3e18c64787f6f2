// The times of a program's ops from a profile (formats/profile.h): of each call the sum of its
// kernels.
//
// A profile says what an op was handed and not what it made, and a program does not say the layout
// of a gradient that a backward is handed. So a call is an op's if it has the name, as many
// tensors, and every shape and dtype that both state; where several calls that differ are left, it
// must have read as many bytes as the op does. Where they still differ, none is taken.
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

  // The median of the calls that are this op's.
  std::optional<std::int64_t> find(OpSignature op) const;

 private:
  using Calls = std::map<std::vector<ProfiledInput>, std::vector<std::int64_t>>;  // their times
  std::map<std::string, Calls, std::less<>> calls_;                               // by name
};

}  // namespace ferry
