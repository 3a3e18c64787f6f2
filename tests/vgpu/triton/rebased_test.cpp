// What a rebased launch touches, moved back, is what the launch touches; and it does not change if
// the tensors move.
#include "vgpu/triton/rebased.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/vgpu/triton/kernels.h"

namespace ferry::vgpu::triton {
namespace {

using Floats = std::vector<float>;

// An addition whose three tensors begin at these elements of these storages.
Launched placed(const std::vector<Floats*>& storages, const std::vector<std::size_t>& first,
                std::int64_t count) {
  Launched made(addition());
  for (Floats* storage : storages) made.with(*storage);
  for (std::size_t i = 0; i < first.size(); ++i) made.launch.arguments[i] += 4 * first[i];
  auto& memory = made.launch.memory;  // two tensors of one storage name it once
  memory.erase(std::unique(memory.begin(), memory.end()), memory.end());
  made.with(count).on((count + 3) / 4);
  return made;
}

TEST(Rebased, TheSameBytesAreFoundAndMovingTheTensorsChangesNothing) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<Floats> here(3, Floats(64)), there(3, Floats(64));
    std::vector<std::size_t> storage, first;
    std::vector<Floats*> here_at, there_at;
    for (int tensor = 0; tensor < 3; ++tensor) {
      storage.push_back(random() % 3);
      first.push_back(random() % 32);
      here_at.push_back(&here[storage.back()]);
      there_at.push_back(&there[storage.back()]);
    }
    const auto count = static_cast<std::int64_t>(random() % 32);
    const Launched one = placed(here_at, first, count), other = placed(there_at, first, count);
    const Rebased rebased(one.kernel, one.launch);
    EXPECT_EQ(rebased.launch(), Rebased(other.kernel, other.launch).launch());
    const Accesses direct = one.accesses();
    const Accesses found = find_accesses(one.kernel, rebased.launch());
    EXPECT_EQ(rebased.real(found.reads), direct.reads);
    EXPECT_EQ(rebased.real(found.writes), direct.writes);
  }
}

TEST(Rebased, OtherPlacesInTheStoragesAreAnotherLaunch) {
  Floats x(64), y(64), out(64);
  const auto at = [&](std::vector<Floats*> storages, std::vector<std::size_t> first) {
    const Launched made = placed(storages, first, 8);
    return Rebased(made.kernel, made.launch).launch();
  };
  const Launch plain = at({&x, &y, &out}, {0, 0, 0});
  EXPECT_FALSE(plain == at({&x, &y, &out}, {0, 1, 0}));
  EXPECT_FALSE(plain == at({&x, &x, &out}, {0, 0, 0}));
  Floats longer(65);
  EXPECT_FALSE(plain == at({&x, &y, &longer}, {0, 0, 0}));
}

TEST(Rebased, AnArgumentOutsideOfAllStoragesStaysAndIsFound) {
  Floats x(64), out(64);
  Launched made = placed({&x, &x, &out}, {0, 0, 0}, 8);
  made.launch.arguments[1] = 16;
  const Rebased rebased(made.kernel, made.launch);
  EXPECT_EQ(rebased.launch().arguments[1], 16U);
  EXPECT_THROW(find_accesses(made.kernel, rebased.launch()), std::runtime_error);
}

}  // namespace
}  // namespace ferry::vgpu::triton
