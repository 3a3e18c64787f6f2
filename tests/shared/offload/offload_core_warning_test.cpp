// The warning that the host's memory runs out: to whom it is given, and what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/choices/draws.h"
#include "tests/shared/offload/offloader_rig.h"
#include "tests/support/objection.h"

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

// A host has 1,000 pages. About as many as the share are in use at the first unpack.
test::Objection judge_warning(std::uint64_t seed) {
  constexpr std::int64_t kPage = 4096;
  choices::Draws draws(seed);
  const bool known = !draws.one_in(4), pinned = !draws.one_in(4), listens = !draws.one_in(4);
  sim::MachineOptions machine;
  machine.host_total_bytes = known ? 1000 * kPage : 0;
  CoreOptions options = test::eager_options();
  options.min_bytes = 1;
  options.host_warn_percent = draws.in(0, 100);
  if (!pinned) options.host_memory = HostMemory::kPageable;
  std::vector<std::string> warnings, must;
  if (listens) options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const std::int64_t pages =
      std::max<std::int64_t>(10 * options.host_warn_percent + draws.in(-2, 2), 2);
  const std::string share = std::to_string(pages / 10) + "." + std::to_string(pages % 10) + "%";
  if (known && pinned && listens && pages > 10 * options.host_warn_percent) {
    must = {share + " of the host's memory is in use, more than " +
            std::to_string(options.host_warn_percent) +
            "%: page-locked memory for offloaded tensors may run out"};
  }
  Rig rig(options, machine);
  auto block = rig.world.machine().allocate_host(Step::kHostAllocate, (pages - 1) * kPage);
  const sim::Tensor tensor = rig.world.make(64);
  for (int packs = 2; packs > 0; --packs) {
    const SaveRef save = rig.pack(tensor);
    for (int unpacks = 2; unpacks > 0; --unpacks) save->unpack();
  }
  rig.world.machine().release_host(Step::kHostReturn, block, {});
  // Where nobody begins a forward, packs count from 0 in run 0.
  if (rig.decisions.front() != Decision{DecisionKind::kPack, 0, 0, 64}) return "another first pack";
  if (warnings == must) return std::nullopt;
  return "of a host with " + share +
         " in use it says: " + (warnings.empty() ? "nothing" : warnings.front());
}

TEST(HostWarning, ComesOnceWhereMoreThanTheShareIsInUse) {
  EXPECT_EQ(test::first_objection(judge_warning), "");
}

}  // namespace
}  // namespace ferry
