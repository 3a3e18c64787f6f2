// The warning that the host's memory runs out: to whom it is given, and what it says.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/support/offloader_rig.h"

namespace ferry {
namespace {

using test::kBytes;
using test::Rig;
using test::SaveRef;

std::vector<std::string> warnings_where(std::int64_t host_bytes, bool listens) {
  sim::MachineOptions machine;
  machine.host_total_bytes = host_bytes;
  std::vector<std::string> texts;
  CoreOptions options = test::eager_options();
  if (listens) options.warn = [&](const std::string& text) { texts.push_back(text); };
  Rig rig(options, machine);
  const SaveRef save = rig.pack_only(rig.world.make(kBytes));
  rig.evict();
  rig.script.backward([&] { EXPECT_NO_THROW(rig.consume(save)); });
  return texts;
}

TEST(HostWarning, NeedsSomebodyToHearItAndAHostWhoseSizeIsKnown) {
  EXPECT_EQ(warnings_where(kBytes, true).size(), 1U);
  EXPECT_TRUE(warnings_where(kBytes, false).empty());
  EXPECT_TRUE(warnings_where(0, true).empty());
}

TEST(HostWarning, SaysThePercentageThatIsInUse) {
  const auto says = [](const HostUsage& usage) {
    const std::string text = host_warning(usage, 60);
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(says({.used_bytes = 999'500, .total_bytes = 1'000'000}), "99.9%");
  EXPECT_EQ(says({.used_bytes = 61'250, .total_bytes = 100'000}), "61.2%");
  EXPECT_EQ(says({.used_bytes = 750, .total_bytes = 1'000}), "75.0%");
}

}  // namespace
}  // namespace ferry
