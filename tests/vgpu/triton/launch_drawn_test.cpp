// Random kernels compute what plain C++ computes, and touch what they say beforehand. A kernel with
// one operation exchanged is found, so the comparison can fail.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/vgpu/triton/drawn_kernels.h"
#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

constexpr std::int64_t kPrograms = 5;

std::uint64_t first_seed() {
  const char* const given = std::getenv("FERRY_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}
int kernels() {
  const char* const given = std::getenv("FERRY_DRAWN_KERNELS");
  return given != nullptr ? std::atoi(given) : 300;
}

struct Drawn {
  explicit Drawn(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::int64_t program = 0; program < kPrograms; ++program) {
      Tile tile{};
      for (double& element : tile) {
        element = static_cast<double>(static_cast<int>(random() % 17)) - 8;
        x.push_back(static_cast<float>(element));
      }
      const DrawnKernel kernel(seed, tile, program);
      text = kernel_text("%x: !tt.ptr<f32>, %out: !tt.ptr<f32>", kernel.text());
      for (const double element : kernel.result()) wanted.push_back(static_cast<float>(element));
    }
  }
  std::string text;
  std::vector<float> x;
  std::vector<float> wanted;
};

std::vector<float> computed(const std::string& text, std::vector<float> x) {
  std::vector<float> out(x.size(), 1000);
  Launched launched(text);
  launched.with(x).with(out).on(kPrograms);
  const Accesses accesses = launched.accesses();
  EXPECT_TRUE(accesses.is_exact);
  EXPECT_EQ(accesses.reads, std::vector<Range>{bytes_of(x, 0, x.size())});
  EXPECT_EQ(accesses.writes, std::vector<Range>{bytes_of(out, 0, out.size())});
  launched.run();
  return out;
}

TEST(LaunchDrawnTest, ComputesWhatPlainCodeComputes) {
  for (int i = 0; i < kernels(); ++i) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(i);
    const Drawn drawn(seed);
    ASSERT_EQ(computed(drawn.text, drawn.x), drawn.wanted)
        << "FERRY_SEED=" << seed << " FERRY_DRAWN_KERNELS=1\n"
        << drawn.text;
  }
}

// Replaces the first `from` of the text.
std::string exchanged(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST(LaunchDrawnTest, FindsAnExchangedOperation) {
  const std::vector<std::pair<std::string, std::string>> mutants = {
      {"arith.addf", "arith.subf"}, {"arith.maxnumf", "arith.minnumf"},
      {"cmpf ogt", "cmpf olt"},     {"arith.andi", "arith.ori"},
      {"to %base", "to %size"},     {"arith.negf", "math.absf"}};
  for (const auto& [from, to] : mutants) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Drawn drawn(seed);
      found += computed(exchanged(drawn.text, from, to), drawn.x) != drawn.wanted ? 1 : 0;
    }
    EXPECT_GT(found, 0) << from << " -> " << to;
  }
}

}  // namespace
}  // namespace ferry::vgpu::triton
