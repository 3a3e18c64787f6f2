// One table for several cards: each row is the plan that one card alone gives.
#include "cli/cards_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "scenarios/paths.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class CardsPlanTest : public PlanFolder {
 protected:
  nlohmann::json json(const std::string& words) {
    return nlohmann::json::parse(ferry("plan " + words + " --unchecked --json").out);
  }
};

TEST_F(CardsPlanTest, EachRowIsThePlanOfTheCardAlone) {
  const std::string training = "gpt2 --policy keep,offload,checkpoint --budget 8GiB ";
  const auto cards = json(training + "--card a10,h100")["cards"];
  ASSERT_EQ(cards.size(), 2U);
  for (const auto& card : cards) {
    const auto alone = json(training + "--card " + card["card"].get<std::string>())["rows"];
    const auto& row = alone[2];
    EXPECT_EQ(card["policy"], "checkpoint") << "the fastest that fits";
    EXPECT_EQ(card["step_ns"], row["step_ns"]);
    EXPECT_EQ(card["least_bytes"], row["least_bytes"]);
    EXPECT_EQ(card["fits"], row["fits"]);
    EXPECT_EQ(card["keep_ns"], alone[0]["step_ns"]);
  }
}

// A step of gpt2 trains 8 x 1024 tokens.
TEST_F(CardsPlanTest, ACostIsAPriceTimesTheTimeOfAMillionTokens) {
  const auto cards = json("gpt2 --policy keep --card a10,h100 --dollars h100=360")["cards"];
  EXPECT_TRUE(cards[0]["cost_of_a_million"].is_null());
  EXPECT_EQ(cards[1]["units_in_a_step"], 8192);
  // 360 an hour is 0.1 a second.
  const double seconds = cards[1]["step_ns"].get<double>() / 1e9 * 1e6 / 8192;
  EXPECT_NEAR(cards[1]["cost_of_a_million"].get<double>(), seconds * 0.1, 0.0001);
}

TEST_F(CardsPlanTest, ACardsFileMayStateThePrice) {
  write("mine.toml",
        "cost = \"360/h\"\n" + read_file(find_shipped("hardware", "hardware", ".toml", "h100")));
  const std::string training = "gpt2 --policy keep --card h100,mine.toml";
  const auto stated = json(training)["cards"];
  EXPECT_TRUE(stated[0]["cost_of_a_million"].is_null());
  EXPECT_EQ(stated[1]["cost_of_a_million"],
            json(training + " --dollars h100=360")["cards"][0]["cost_of_a_million"]);
}

TEST_F(CardsPlanTest, AProgramThatDoesNotSayItsBatchHasNoCost) {
  write("other.toml", "cost = \"360/h\"\n" + read("tiny.toml"));
  const auto cards = json("chain.jsonl --card tiny.toml,other.toml")["cards"];
  EXPECT_TRUE(cards[1]["unit"].is_null());
  EXPECT_TRUE(cards[1]["cost_of_a_million"].is_null());
}

TEST_F(CardsPlanTest, TheTableNamesTheFastestAndTheCheapest) {
  const Result result =
      ferry("plan gpt2 --policy keep --unchecked --card a10,h100 --dollars a10=0.5,h100=50");
  EXPECT_EQ(result.code, kOk);
  EXPECT_NE(result.out.find("\nThe fastest is h100, "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" The cheapest is a10, 0.00"), std::string::npos) << result.out;
}

TEST_F(CardsPlanTest, WhereItFitsOnNoCardTheCodeSaysSo) {
  const Result result = ferry("plan gpt2 --policy keep --unchecked --card t4,a10 --budget 2GiB");
  EXPECT_EQ(result.code, kDoesNotFit);
  EXPECT_NE(result.out.find("nothing fits"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nIt fits on none of these cards."), std::string::npos) << result.out;
}

TEST_F(CardsPlanTest, WrongArgumentsAreNamed) {
  const std::string plan = "plan gpt2 --policy keep --card ";
  expect_refused(plan + "a10,h101", "h101: expected the path of a hardware file");
  expect_refused(plan + "a10,", "--card: expected a card between two commas");
  expect_refused(plan + "a10,t4 -o x.plan", "--output: expected one --card");
  expect_refused(plan + "a10,t4 --csv", "--csv: expected one --card, and no --dollars; or --json");
  expect_refused("plan gpt2 --card a10,t4 --pareto", "--card: expected one card, and no --dollars");
  for (const char* price : {"a10", "a10=", "a10=x", "a10=0", "a10=-1", "a10=1x", "a10=nan"}) {
    expect_refused(
        plan + "a10,t4 --dollars " + price,
        std::string("--dollars: '") + price + "': expected CARD=PRICE, a price per hour");
  }
  expect_refused(plan + "a10,t4 --dollars h100=1", "--dollars: 'h100' is none of the cards");
}

// Without prices the option has nothing to show.
TEST_F(CardsPlanTest, AnOptionWithoutPricesIsNotSilent) {
  const Result result = ferry("plan gpt2 --policy keep --unchecked --card a10,t4 --dollars");
  EXPECT_EQ(result.code, kOk);
  EXPECT_NE(result.err.find("--dollars: no price is known"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace ferry::cli
