// Declarations of skip tensors: what fits, what does not and in which words, and the routes.
#include "shared/skip/skippable.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "shared/skip/layout.h"

namespace ferry {
namespace {

std::string verdict(const std::vector<Skippable>& layers) {
  try {
    verify_skippables(layers);
  } catch (const SkipError& error) {
    return error.what();
  }
  return "fits";
}

const std::string kHead = "one or more pairs of stash and pop do not match:\n";

TEST(VerifySkippables, AStashAndAPopFit) {
  EXPECT_EQ(verdict({}), "fits");
  EXPECT_EQ(verdict({{"a", {{"x"}}, {}}, {"b", {}, {}}, {"c", {}, {{"x"}}}}), "fits");
}

TEST(VerifySkippables, TheMessages) {
  EXPECT_EQ(verdict({{"a", {{"x"}}, {}}}),
            kHead + "\n* no module declared 'x' as poppable but stashed");
  EXPECT_EQ(verdict({{"a", {}, {{"x"}}}}),
            kHead + "\n* 'a' declared 'x' as poppable but it was not stashed");
  EXPECT_EQ(verdict({{"a", {}, {{"x"}}}, {"b", {{"x"}}, {}}}),
            kHead +
                "\n* 'a' declared 'x' as poppable but it was not stashed"
                "\n* no module declared 'x' as poppable but stashed");
  EXPECT_EQ(verdict({{"a", {{"x"}}, {}}, {"b", {{"x"}}, {}}, {"c", {}, {{"x"}}}}),
            kHead + "\n* 'b' redeclared 'x' as stashable but not isolated by namespace");
  EXPECT_EQ(verdict({{"a", {{"x"}}, {}}, {"b", {}, {{"x"}}}, {"c", {}, {{"x"}}}}),
            kHead + "\n* 'c' redeclared 'x' as poppable but not isolated by namespace");
  EXPECT_EQ(verdict({{"a", {{"x"}}, {{"x"}}}}),
            kHead + "\n* 'a' declared 'x' both as stashable and as poppable");
}

TEST(VerifySkippables, NamespacesKeepEqualNamesApart) {
  const Namespace one;
  const Namespace two;
  EXPECT_NE(one, two);
  EXPECT_EQ(one, Namespace(one));
  EXPECT_NE(one, Namespace::common());
  EXPECT_EQ(Namespace::common(), Namespace::common());
  EXPECT_EQ(SkipName("x"), SkipName("x"));
  EXPECT_FALSE(SkipName("x", one) == SkipName("x"));
  EXPECT_FALSE(SkipName("x", one) == SkipName("x", two));
  EXPECT_EQ(verdict({{"a", {{"x", one}}, {}},
                     {"b", {{"x", two}}, {}},
                     {"c", {}, {{"x", two}}},
                     {"d", {}, {{"x", one}}}}),
            "fits");
  EXPECT_NE(verdict({{"a", {{"x", one}}, {}}, {"b", {}, {{"x"}}}}), "fits");
}

TEST(SkipLayout, RoutesByStage) {
  const std::vector<Skippable> layers = {{"a", {{"far"}, {"near"}}, {}},
                                         {"b", {{"late"}}, {{"near"}}},
                                         {"c", {}, {}},
                                         {"d", {}, {{"far"}, {"late"}}}};
  const SkipLayout layout = skip_layout(layers, std::array<std::size_t, 4>{0, 0, 1, 2});
  ASSERT_EQ(layout.routes().size(), 3u);
  EXPECT_FALSE(layout.requires_copy({"near"}));
  EXPECT_TRUE(layout.requires_copy({"far"}));
  EXPECT_FALSE(layout.requires_copy({"unknown"}));
  EXPECT_EQ(layout.into(2).size(), 2u);
  EXPECT_EQ(layout.out_of(0), layout.into(2));
  EXPECT_TRUE(layout.into(1).empty());
  const SkipRoute& far = layout.routes()[layout.find_crossing({"far"})];
  EXPECT_EQ(far.from, 0u);
  EXPECT_EQ(far.to, 2u);
}

}  // namespace
}  // namespace ferry
