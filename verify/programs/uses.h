// What becomes of saved tensors in a script (verify/scripts/scripts.h): they are unpacked and
// dropped by hand, in ways that no program of the simulator has. All of a script follows from its
// number, its kind as well; of its steps there are at most so many.
#pragma once

namespace ferry::verify {

struct DrawnUses {
  int number = 0;
  int steps = 0;  // 0: there is no script
  bool operator==(const DrawnUses&) const = default;
};
inline constexpr int kUsesNumbers = 1 << 24;
inline constexpr int kMostUses = 40;

}  // namespace ferry::verify
