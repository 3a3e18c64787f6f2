#include "scenarios/hardware.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "scenarios/programs.h"
#include "tests/scenarios/unreadable.h"

namespace ferry {
namespace {

const std::string kText = R"(description = "a small one"
memory = "24GiB"
host_memory = "64GiB"
memory_rate = "1TB/s"
kernel_min = "2us"
launch = "5us"
[peak]
bf16 = "100TFLOP/s"
fp32 = "50TFLOP/s"
fp64 = "1TFLOP/s"
[efficiency]
matmul = "80%"
memory = "90%"
[link]
h2d = "25GB/s"
d2h = "24GB/s"
h2d_both = "12GB/s"
d2h_both = "23GB/s"
latency = "8us"
)";

const std::string kLinked = R"([peer]
rate = "300GB/s"
latency = "3us"
[port]
devices = 4
up = "20GB/s"
down = "21GB/s"
)";

std::string error(const std::string& piece, const std::string& instead) {
  std::string text = kText + kLinked;
  text.replace(text.find(piece), piece.size(), instead);
  try {
    parse_hardware(text, "small.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(HardwareTest, AHostHasBothRatesOrNone) {
  EXPECT_EQ(parse_hardware(kText, "small.toml").host.memory_bytes_per_us, 0);
  const std::string rate = "[host]\nmemory_rate = \"40GB/s\"\n", peak = "fp32 = \"1TFLOP/s\"\n";
  const Hardware known = parse_hardware(kText + rate + peak, "small.toml");
  EXPECT_EQ(known.host.memory_bytes_per_us, 40'000);
  EXPECT_EQ(known.host.flops_per_us, 1'000'000);
  EXPECT_THROW(parse_hardware(kText + rate, "small.toml"), InputError);
}

TEST(HardwareTest, AnL2HasASizeAndARate) {
  EXPECT_EQ(parse_hardware(kText, "small.toml").l2_bytes, 0);
  const std::string size = "l2 = \"50MB\"\n", rate = "l2_rate = \"5TB/s\"\n";
  const Hardware card = parse_hardware(size + rate + kText, "small.toml");
  EXPECT_EQ(card.l2_bytes, 50'000'000);
  EXPECT_EQ(card.l2_bytes_per_us, 5'000'000);
  EXPECT_THROW(parse_hardware(size + kText, "small.toml"), InputError);
  EXPECT_THROW(parse_hardware(rate + kText, "small.toml"), InputError);
  EXPECT_THROW(parse_hardware("l2 = \"0MB\"\n" + rate + kText, "small.toml"), InputError);
}

TEST(HardwareTest, EveryFigureIsRead) {
  const Hardware small = parse_hardware(kText, "folder/small.toml");
  EXPECT_EQ(small.name, "small");
  EXPECT_EQ(small.description, "a small one");
  EXPECT_EQ(small.memory_bytes, std::int64_t{24} << 30);
  EXPECT_EQ(small.usable_bytes(), small.memory_bytes) << "as far as is known";
  EXPECT_EQ(small.host_memory_bytes, std::int64_t{64} << 30);
  EXPECT_EQ(small.memory_bytes_per_us, 1'000'000);
  EXPECT_EQ(small.kernel_min_ns, 2'000);
  EXPECT_EQ(small.launch_ns, 5'000);
  EXPECT_EQ(small.flops_per_us_of(DType::kBF16), 100'000'000);
  EXPECT_EQ(small.flops_per_us_of(DType::kF8), 100'000'000);  // none given: as bf16
  EXPECT_EQ(small.flops_per_us_of(DType::kI64), 50'000'000);
  EXPECT_EQ(small.flops_per_us_of(DType::kF64), 1'000'000);
  EXPECT_EQ(small.matmul_percent, 80);
  EXPECT_EQ(small.memory_percent, 90);
  EXPECT_EQ(small.link.h2d_alone, 25'000);
  EXPECT_EQ(small.link.d2h_alone, 24'000);
  EXPECT_EQ(small.link.h2d_both, 12'000);
  EXPECT_EQ(small.link.d2h_both, 23'000);
  EXPECT_EQ(small.link.latency_ns, 8'000);
}

TEST(HardwareTest, AttentionPageableCopiesAndPinningAreOptional) {
  const Hardware small = parse_hardware(kText, "small.toml");
  EXPECT_EQ(small.attention_percent, 80) << "as matmuls";
  EXPECT_EQ(small.link.pageable_h2d, 25'000) << "as of pinned memory";
  EXPECT_EQ(small.link.pageable_d2h, 24'000);
  EXPECT_EQ(small.pin_bytes_per_us, 0);
  std::string text = "pin_rate = \"3GB/s\"\n" + kText + "pageable_h2d = \"6GB/s\"\n";
  text.insert(text.find("memory = \"90%\""), "attention = \"55%\"\n");
  const Hardware more = parse_hardware(text, "small.toml");
  EXPECT_EQ(more.attention_percent, 55);
  EXPECT_EQ(more.link.pageable_h2d, 6'000);
  EXPECT_EQ(more.link.pageable_d2h, 24'000);
  EXPECT_EQ(more.pin_bytes_per_us, 3'000);
  try {
    parse_hardware(kText + "pageable_h2d = \"26GB/s\"\n", "small.toml");
    ADD_FAILURE() << "faster than pinned";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "small.toml:20: expected link.pageable_h2d: at most the rate of pinned memory");
  }
}

TEST(HardwareTest, WhatIsReportedLessAContextIsUsable) {
  const auto with = [](const std::string& lines) { return lines + kText; };
  const Hardware small =
      parse_hardware(with("capacity = \"23.5GiB\"\ncontext = \"512MiB\"\n"), "small.toml");
  EXPECT_EQ(small.capacity_bytes, std::int64_t{47} << 29);
  EXPECT_EQ(small.usable_bytes(), std::int64_t{23} << 30);
  const auto refusal = [&](const std::string& lines) -> std::string {
    try {
      parse_hardware(with(lines), "small.toml");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("capacity = \"25GiB\"\n"), "small.toml:1: expected capacity: at most memory");
  EXPECT_EQ(refusal("context = \"24GiB\"\n"),
            "small.toml:1: expected context: less than capacity, or than memory without it");
}

TEST(HardwareTest, MissingKeysAreToldTogether) {
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      parse_hardware(text, "small.toml");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(kText.substr(0, kText.find("[efficiency]"))),
            "small.toml: expected keys \"efficiency.matmul\", \"efficiency.memory\", \"link.h2d\", "
            "\"link.d2h\", \"link.h2d_both\", \"link.d2h_both\", \"link.latency\"");
  EXPECT_EQ(refusal(kText.substr(kText.find("memory ="))),
            "small.toml: expected a key \"description\"");
}

TEST(HardwareTest, WhatLinksSeveralIsOptional) {
  const Hardware alone = parse_hardware(kText, "small.toml");
  EXPECT_EQ(alone.peer.bytes_per_us, 0);
  EXPECT_EQ(alone.port.devices, 0);
  const Hardware linked = parse_hardware(kText + kLinked, "small.toml");
  EXPECT_EQ(linked.peer.bytes_per_us, 300'000);
  EXPECT_EQ(linked.peer.latency_ns, 3'000);
  EXPECT_EQ(linked.port.devices, 4);
  EXPECT_EQ(linked.port.up_bytes_per_us, 20'000);
  EXPECT_EQ(linked.port.down_bytes_per_us, 21'000);
}

TEST(HardwareTest, HalfALinkIsRefused) {
  EXPECT_EQ(error("rate = \"300GB/s\"\n", ""), "small.toml: expected a key \"peer.rate\"");
  EXPECT_EQ(error("latency = \"3us\"\n", ""), "small.toml: expected a key \"peer.latency\"");
  EXPECT_EQ(error("300GB/s", "0"), "small.toml:21: expected peer.rate: more than 0");
  EXPECT_EQ(error("devices = 4\n", ""),
            "small.toml: expected port.devices: the number of GPUs that share the port");
  EXPECT_EQ(error("devices = 4", "devices = 0"),
            "small.toml:24: expected port.devices: an integer from 1 to 64");
  EXPECT_EQ(error("up = \"20GB/s\"\n", ""), "small.toml: expected a key \"port.up\"");
  EXPECT_EQ(error("20GB/s", "0"), "small.toml:25: expected port.up: more than 0");
  EXPECT_EQ(error("down = \"21GB/s\"\n", ""), "small.toml: expected a key \"port.down\"");
}

TEST(HardwareTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error("memory = \"24GiB\"", "memory = [").rfind("small.toml:", 0), 0u);
  EXPECT_EQ(error("memory = \"24GiB\"\n", ""), "small.toml: expected a key \"memory\"");
  EXPECT_EQ(error("\"24GiB\"", "\"24 gigs\"").rfind("small.toml:2: memory: expected a size", 0),
            0u);
  EXPECT_EQ(error("\"24GiB\"", "true").rfind("small.toml:2: memory: expected a size", 0), 0u);
  EXPECT_EQ(error("\"24GiB\"", "0"), "small.toml:2: expected memory: more than 0");
  EXPECT_EQ(error("fp64 = ", "fp65 = \"1TFLOP/s\"\nfp64 = "),
            "small.toml:10: unknown key \"peak.fp65\"");
  EXPECT_EQ(error("12GB/s", "26GB/s"), "small.toml:17: expected link.h2d_both: at most link.h2d");
  EXPECT_EQ(error("\"a small one\"", "1"), "small.toml:1: expected description: a string");
}

// A card with a latency of 292 years made a slowdown of -167592330842.
TEST(HardwareTest, NoQuantityIsBeyondWhatTheSimulatorCounts) {
  EXPECT_EQ(error("\"8us\"", "\"9223372036s\""),
            "small.toml:19: expected link.latency: at most 1000000 s");
  EXPECT_EQ(error("\"24GiB\"", "\"1025TiB\""),
            "small.toml:2: expected memory: at most 1048576 GiB");
  EXPECT_EQ(error("\"25GB/s\"", "\"1000001TB/s\""),
            "small.toml:15: expected link.h2d: at most 1000000000 GB/s");
}

TEST(HardwareTest, WhatShipsIsReadable) {
  const std::vector<Hardware> all = list_hardware(none_is_unreadable);
  EXPECT_EQ(all.size(), 22u);
  for (const Hardware& card : all) {
    EXPECT_LT(card.capacity_bytes, card.memory_bytes)
        << card.name << ": its file says what is reported";
    EXPECT_GT(card.context_bytes, 0) << card.name;
    EXPECT_GT(card.multiprocessors, 0) << card.name;
    EXPECT_TRUE(card.peer.bytes_per_us > 0 || card.port.devices > 0 || card.name == "gh200");
  }
  EXPECT_EQ(find_hardware("h100").link.h2d_alone, 55'600);
  EXPECT_EQ(find_hardware("a100").link.h2d_both, 12'000);
  EXPECT_EQ(find_hardware("rtx4090").memory_bytes, std::int64_t{24} << 30);
  // The H100's successor: the same chip and links, with more and faster memory.
  EXPECT_EQ(find_hardware("h200").memory_bytes, std::int64_t{141} << 30);
  EXPECT_EQ(find_hardware("h200").memory_bytes_per_us, 4'800'000);
  EXPECT_EQ(find_hardware("h200").flops_per_us, find_hardware("h100").flops_per_us);
  EXPECT_EQ(find_hardware("h200").link.h2d_alone, find_hardware("h100").link.h2d_alone);
  EXPECT_EQ(find_hardware("a100").peer.bytes_per_us, 270'000);
  EXPECT_EQ(find_hardware("rtx4090").peer.bytes_per_us, 0);
  EXPECT_EQ(find_hardware("rtx4090").port.devices, 2);
}

TEST(HardwareTest, AnUnknownNameIsToldWhatThereIs) {
  try {
    find_hardware("h1000");
    FAIL() << "expected an error";
  } catch (const InputError& error) {
    for (const Hardware& each : list_hardware(none_is_unreadable)) {
      EXPECT_NE(std::string(error.what()).find(each.name), std::string::npos) << each.name;
    }
  }
}

TEST(HardwareTest, TheEnvironmentSaysWhereToLook) {
  ASSERT_EQ(::setenv("FERRY_SCENARIOS", "/nowhere", 1), 0);
  EXPECT_THROW(list_hardware(none_is_unreadable), InputError);
  EXPECT_THROW(list_programs(none_is_unreadable), InputError);
  EXPECT_THROW(find_hardware("h100"), InputError);
  ::unsetenv("FERRY_SCENARIOS");
  EXPECT_FALSE(list_hardware(none_is_unreadable).empty());
}

// One broken card hid all the others.
TEST(HardwareTest, ACardThatCannotBeReadIsToldAndTheOthersAreListed) {
  namespace fs = std::filesystem;
  const fs::path root =
      fs::path(::testing::TempDir()) / ("ferry_cards_" + std::to_string(::getpid()));
  fs::create_directories(root / "hardware" / "folder.toml");
  write_file(root / "hardware" / "broken.toml", "memory = 3\n");
  write_file(root / "hardware" / "good.toml", kText);
  ASSERT_EQ(::setenv("FERRY_SCENARIOS", root.c_str(), 1), 0);
  std::vector<std::string> told;
  const std::vector<Hardware> all =
      list_hardware([&](const InputError& error) { told.emplace_back(error.what()); });
  ::unsetenv("FERRY_SCENARIOS");
  fs::remove_all(root);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "good");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NE(told[0].find("hardware/broken.toml: expected keys \"description\", "),
            std::string::npos)
      << told[0];
  EXPECT_NE(told[1].find("folder.toml: cannot read: Is a directory"), std::string::npos) << told[1];
}

}  // namespace
}  // namespace ferry
