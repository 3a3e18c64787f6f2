// What is told of a choice of modules is what a run of the program with them as segments says.
#include "plan/module_segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "formats/outline.h"
#include "formats/program_file.h"
#include "plan/ladder.h"
#include "scenarios/programs.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

void expect_equal(const PackedTensor& told, const PackedTensor& found) {
  EXPECT_EQ(told.node, found.node);
  EXPECT_EQ(told.layout, found.layout);
  EXPECT_EQ(told.group, found.group);
  EXPECT_EQ(told.storage, found.storage);
  EXPECT_EQ(told.storage_bytes, found.storage_bytes);
  EXPECT_EQ(told.global, found.global);
  EXPECT_EQ(told.exempt, found.exempt);
}

void expect_equal(const Survey& told, const Survey& found) {
  ASSERT_EQ(told.packs.size(), found.packs.size());
  for (std::size_t p = 0; p < told.packs.size(); ++p) expect_equal(told.packs[p], found.packs[p]);
  ASSERT_EQ(told.segments.size(), found.segments.size());
  for (std::size_t s = 0; s < told.segments.size(); ++s) {
    const SurveyedSegment& a = told.segments[s];
    const SurveyedSegment& b = found.segments[s];
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.end, b.end);
    EXPECT_EQ(a.whole, b.whole);
    EXPECT_EQ(a.kernels, b.kernels);
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (std::size_t i = 0; i < a.inputs.size(); ++i) expect_equal(a.inputs[i], b.inputs[i]);
  }
}

class ModuleSegmentsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(ModuleSegmentsOf, DrawnModulesAreTheSurveyOfTheOutlinedProgram) {
  const Program program = load_program(find_program(GetParam()));
  const Hardware card = find_hardware("h100");
  const std::vector<Span> spans = module_spans(program, card);
  std::vector<std::string> modules;
  for (const Span& span : spans) {
    if (modules.empty() || modules.back() != span.module) modules.push_back(span.module);
  }
  const ModuleSegments segments(program, card, modules);
  for (int number = 0; number < 6; ++number) {
    choices::Draws draws(25, static_cast<std::uint64_t>(number));
    std::vector<std::string> drawn;
    std::size_t end = 0;
    for (const Span& span : spans) {
      if (span.begin < end || draws.one_in(4)) continue;
      end = span.end;
      drawn.push_back(span.module);
    }
    ASSERT_FALSE(drawn.empty());
    expect_equal(segments.survey_of(drawn), survey(outline(program, drawn), card));
  }
}

INSTANTIATE_TEST_SUITE_P(Shipped, ModuleSegmentsOf, ::testing::Values("gpt2", "unet", "llama3-8b"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace ferry::plan
