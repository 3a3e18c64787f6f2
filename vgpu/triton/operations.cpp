#include "vgpu/triton/operations.h"

#include <algorithm>
#include <array>
#include <map>

namespace ferry::vgpu::triton {
namespace {

constexpr std::array<std::string_view, 7> kTerminators = {
    "scf.yield",      "scf.condition", "tt.return", "tt.reduce.return",
    "tt.scan.return", "cf.br",         "cf.cond_br"};

using Run = void (*)(Machine&, const Op&);

std::map<std::string_view, Run> all_operations() {
  std::map<std::string_view, Run> all;
  for (const auto& some :
       {arithmetic(), comparisons(), functions(), libdevice(), conversions(), shapes(),
        reductions(), products(), accesses(), atomics(), control(), printing()}) {
    for (const Operation& operation : some) all.emplace(operation.name, operation.run);
  }
  return all;
}

}  // namespace

Run find_operation(std::string_view name) {
  static const std::map<std::string_view, Run> all = all_operations();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

bool is_terminator(std::string_view name) {
  return std::find(kTerminators.begin(), kTerminators.end(), name) != kTerminators.end();
}

}  // namespace ferry::vgpu::triton
