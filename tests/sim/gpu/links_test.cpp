#include "sim/gpu/links.h"

#include <gtest/gtest.h>

namespace ferry::sim {
namespace {

constexpr LinkRates kPcie{.h2d_alone = 1000, .d2h_alone = 900, .h2d_both = 500, .d2h_both = 800};
constexpr Route kUp0{.from = 0};
constexpr Route kDown0{.to = 0};
constexpr Route kDown1{.to = 1};

TEST(LinksTest, ADirectionSlowsDownWhileAnythingCrossesTheOther) {
  Links links;
  links.add_device(kPcie, kNoPort, {});
  links.add_device(kPcie, kNoPort, {});
  links.enter(kDown0);
  EXPECT_EQ(links.rate(kDown0), 1000);
  const Route peer = links.between(0, 1);
  links.enter(peer);
  EXPECT_EQ(links.rate(kDown0), 500);
  EXPECT_EQ(links.rate(peer), 800);
  links.leave(kDown0);
  EXPECT_EQ(links.rate(peer), 900);
}

TEST(LinksTest, EqualSharesAndTheLeastCounts) {
  Links links;
  const PortId port = links.add_port({.up_bytes_per_us = 700, .down_bytes_per_us = 1500});
  links.add_device(kPcie, port, {});
  links.add_device({.h2d_alone = 300, .d2h_alone = 300}, port, {});
  links.enter(kUp0);
  EXPECT_EQ(links.rate(kUp0), 700);  // the port's
  links.leave(kUp0);
  links.enter(kDown0);
  EXPECT_EQ(links.rate(kDown0), 1000);  // the link's
  links.enter(kDown1);
  EXPECT_EQ(links.rate(kDown1), 300);
  EXPECT_EQ(links.rate(kDown0), 750);  // what the other leaves, nobody gets
}

TEST(LinksTest, APeerCopyOverPcieCrossesBothPorts) {
  Links links;
  const PortId near = links.add_port({.up_bytes_per_us = 600, .down_bytes_per_us = 5000});
  const PortId far = links.add_port({.up_bytes_per_us = 5000, .down_bytes_per_us = 400});
  links.add_device({.latency_ns = 3}, near, {});
  links.add_device({.latency_ns = 7}, far, {});
  const Route there = links.between(0, 1);
  const Route back = links.between(1, 0);
  EXPECT_FALSE(there.on_peer_links);
  EXPECT_EQ(links.latency_ns(there), 7);
  links.enter(there);
  EXPECT_EQ(links.rate(there), 400);
  links.leave(there);
  links.enter(back);
  EXPECT_EQ(links.rate(back), 5000);
}

TEST(LinksTest, PeerLinksLeavePcieAlone) {
  Links links;
  for (int i = 0; i < 3; ++i) {
    links.add_device(kPcie, kNoPort, {.bytes_per_us = 2000 + i, .latency_ns = 5});
  }
  links.enter(kDown1);
  const Route one = links.between(0, 1);
  const Route two = links.between(0, 2);
  links.announce(one);
  EXPECT_FALSE(links.shared(0));
  EXPECT_EQ(links.latency_ns(one), 5);
  links.enter(one);
  EXPECT_EQ(links.rate(one), 2000);
  links.enter(two);  // one direction of device 0's
  EXPECT_EQ(links.rate(one), 1000);
  EXPECT_EQ(links.rate(kDown1), 1000);
  const Route back = links.between(1, 0);
  links.enter(back);  // the other direction
  EXPECT_EQ(links.rate(one), 1000);
  links.leave(back);
  const Route three = links.between(1, 2);  // into device 2, as two
  links.enter(three);
  EXPECT_EQ(links.rate(three), 1001);
}

TEST(LinksTest, WithoutAPeerLinkAtEitherEndPcieIsTheWay) {
  Links links;
  links.add_device(kPcie, kNoPort, {.bytes_per_us = 2000});
  links.add_device(kPcie, kNoPort, {});
  EXPECT_FALSE(links.between(0, 1).on_peer_links);
  EXPECT_FALSE(links.between(1, 0).on_peer_links);
  EXPECT_FALSE(links.shared(0));
  links.announce(links.between(1, 0));
  EXPECT_TRUE(links.shared(0));
  EXPECT_TRUE(links.shared(1));
}

TEST(LinksTest, AShareIsAtLeastAByte) {
  Links links;
  links.add_device({.h2d_alone = 1, .d2h_alone = 1, .h2d_both = 1, .d2h_both = 1}, kNoPort, {});
  links.enter(kDown0);
  links.enter(kDown0);
  EXPECT_EQ(links.rate(kDown0), 1);
}

}  // namespace
}  // namespace ferry::sim
