// The source of a copy: how long the window keeps it, and to whom it goes then.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::kKiB;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;
using Text = std::vector<std::string>;

TEST(OutboundSource, ItStaysThoughTheProgramDropsItWhileItIsCopied) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    const ParcelRef parcel = parts.send(parts.world.make(kBytes));
    const Tensor next = parts.world.make(kBytes);
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(without(Rule::kKeepSource)).empty());
}

TEST(OutboundSource, WhatBackwardComesToMuchLaterNeedNotStay) {
  const auto kept = [](const Mutant& mutant) {
    CoreOptions options = test::eager_options();
    options.window_tensors = kUnlimited;
    options.prefetch_tensors = 1;
    Parts parts(options, mutant);
    std::vector<ParcelRef> parcels;
    for (int i = 0; i < 4; ++i) parcels.push_back(parts.send(parts.world.make(kBytes)));
    Bin<Parts::Device> bin;
    parts.outbound.evict_far(parcels[3]->sequence, bin);
    std::vector<bool> result;
    for (const ParcelRef& parcel : parcels) result.push_back(parcel->kept != nullptr);
    return result;
  };
  EXPECT_EQ(kept({}), (std::vector{false, false, true, true}));
  EXPECT_EQ(kept(without(Rule::kBoundStash)), (std::vector{true, true, true, true}));
}

// Whose stream evicts it makes no difference to that pool.
TEST(OutboundSource, NoStreamWaitsForTheCopyOfAnotherPoolsSource) {
  const auto waits = [](const Mutant& mutant) {
    Parts parts(test::eager_options(), mutant);
    const Tensor x = parts.world.make(kBytes);
    parts.compute_on(1);
    const ParcelRef parcel = parts.send(x);
    parts.evict();
    EXPECT_EQ(parcel->kept, nullptr);
    return parts.context.statistics.compute_waits;
  };
  EXPECT_EQ(waits({}), 0);
  EXPECT_EQ(waits(without(Rule::kOwnerPool)), 1);
}

TEST(OutboundSource, OneLargerThanTheWindowIsAloneInItHoweverSmallTheOthers) {
  CoreOptions options = test::eager_options();
  options.window_tensors = kUnlimited;
  options.window_bytes = kKiB;
  Parts parts(options);
  const ParcelRef tiny = parts.send(parts.world.make(1));
  parts.evict_for(kKiB - 1);
  EXPECT_FALSE(parts.outbound.empty()) << "both fit";
  parts.evict_for(kBytes);
  EXPECT_TRUE(parts.outbound.empty());
}

}  // namespace
}  // namespace ferry
