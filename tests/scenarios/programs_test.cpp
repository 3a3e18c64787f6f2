#include "scenarios/programs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/program_file.h"
#include "formats/stages.h"
#include "tests/scenarios/unreadable.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

class ProgramsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("ferry_programs_" + std::to_string(::getpid()));
    fs::create_directories(root_ / "programs");
    ASSERT_EQ(::setenv("FERRY_SCENARIOS", root_.c_str(), 1), 0);
  }
  void TearDown() override {
    ::unsetenv("FERRY_SCENARIOS");
    fs::remove_all(root_);
  }
  void add(const std::string& name, const std::string& about) {
    write_file(root_ / "programs" / (name + ".jsonl"),
               R"({"ferry":"program","schema":1,"name":"n","about":{)" + about + "}}\n");
  }

  fs::path root_;
};

TEST_F(ProgramsTest, EachIsListedWithALine) {
  add("b", R"("model":"GPT-2","batch":"8")");
  add("a", R"("model":"GPT-2","description":"a small one")");
  add("c", "");
  write_file(root_ / "programs" / "README", "no program");
  const auto all = list_programs(none_is_unreadable);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].description, "a small one");
  EXPECT_EQ(all[1].description, "model GPT-2, batch 8");
  EXPECT_EQ(all[2].description, "n");
  EXPECT_EQ(all[2].path, root_ / "programs" / "c.jsonl");
}

TEST_F(ProgramsTest, OneThatCannotBeReadIsToldAndTheOthersAreListed) {
  add("a", "");
  write_file(root_ / "programs" / "b.jsonl", "no program\n");
  add("c", "");
  std::vector<std::string> told;
  const auto all = list_programs([&](const InputError& error) { told.emplace_back(error.what()); });
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].name, "c");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("programs/b.jsonl:1: "), std::string::npos) << told[0];
}

TEST_F(ProgramsTest, ANameIsAShippedOnesOrAPath) {
  add("a", "");
  EXPECT_EQ(find_program("a"), root_ / "programs" / "a.jsonl");
  EXPECT_EQ(find_program("x/y"), "x/y");
  EXPECT_EQ(find_program("mine.jsonl"), "mine.jsonl");
  EXPECT_THROW(find_program("b"), InputError);
}

// The U-Net is there for its levels and skips.
TEST(ShippedProgramsTest, TheUNetIsCutAtItsLevels) {
  std::vector<std::string> names;
  const Program unet = load_program(find_program("unet"));
  for (const StageUnit& unit : stage_units(unet)) names.push_back(unit.name);
  EXPECT_EQ(names, (std::vector<std::string>{"enc0", "enc1", "enc2", "enc3", "enc4", "mid", "dec4",
                                             "dec3", "dec2", "dec1", "dec0", "head", "end"}));
  // A stage a level: each one's skip goes to its own level by a route of its own.
  std::size_t skips = 0;
  for (const StageRoute& route : cut_into_stages(unet, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).routes) {
    if (!route.tensor || route.to == route.from + 1) continue;
    EXPECT_EQ(route.from + route.to, 10u);
    ++skips;
  }
  EXPECT_EQ(skips, 5u);
}

TEST(ShippedProgramsTest, EachIsSound) {
  for (const ShippedProgram& each : list_programs(none_is_unreadable)) {
    EXPECT_NO_THROW(load_program(each.path)) << each.name;
    EXPECT_FALSE(each.description.empty()) << each.name;
  }
}

}  // namespace
}  // namespace ferry
