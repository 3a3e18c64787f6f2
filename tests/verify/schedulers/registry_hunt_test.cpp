// The fixed schedulers of the field, hunted as a user's is: with all that CUDA and PyTorch leave
// open drawn as well, plans of segments, and drawn orders of the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "verify/hunt/hunt.h"
#include "verify/schedulers/registry.h"

namespace ferry::verify::schedulers {
namespace {

std::vector<std::string> fixed() {
  std::vector<std::string> names;
  for (const SchedulerEntry& entry : schedulers()) {
    if (!entry.faulty) names.emplace_back(entry.name);
  }
  return names;
}

class RegistryHunt : public testing::TestWithParam<std::string> {};

TEST_P(RegistryHunt, IsClean) {
  const Hunt found = hunt(*find_hunted(GetParam()), {.programs = 300});
  EXPECT_FALSE(found.report) << found.report->text;
}

INSTANTIATE_TEST_SUITE_P(Fixed, RegistryHunt, testing::ValuesIn(fixed()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace ferry::verify::schedulers
