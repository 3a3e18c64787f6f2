// The lines of the program's source that a kernel's operations come from.
//
// TTIR has them as `loc(...)`: a file with line and column, a name around another location, a call
// (`callsite(INNER at OUTER)`), or an alias (#loc3) that may be defined after its use. So texts are
// collected while the kernel is read, and resolved at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vgpu/triton/ttir.h"

namespace ferry::vgpu::triton {

class LocationTexts {
 public:
  // `text` is what stands in the brackets of `loc(...)`. Returns its number, which is also its
  // position in what resolve() returns. Number 0 is an unknown line.
  std::uint32_t add(const std::string& text);
  void define(const std::string& alias, const std::string& text) { aliases_[alias] = text; }

  std::vector<Location> resolve() const;

 private:
  Location resolve(const std::string& text, int depth) const;

  std::map<std::string, std::string> aliases_;  // by "#loc3"
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_{""};
};

}  // namespace ferry::vgpu::triton
