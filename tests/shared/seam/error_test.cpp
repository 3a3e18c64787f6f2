// What is thrown is its kind and its world's exception, whichever a handler names.
#include "shared/seam/error.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>

namespace ferry {
namespace {

// A world whose exceptions are no standard library's.
struct WorldTensor {};
class WorldError : public std::exception {
 public:
  explicit WorldError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

struct Kind : Error {
  using Error::Error;
};
struct Narrow : Kind {
  explicit Narrow(int n) : Kind("narrow"), number(n) {}
  int number;
};

}  // namespace

template <>
struct Exceptions<WorldTensor> {
  using Base = WorldError;
  template <class>
  using Of = WorldError;
};

namespace {

template <class Handler, class Call>
std::string caught(Call call) {
  try {
    call();
  } catch (const Handler& error) {
    return error.what();
  } catch (...) {
    return "another";
  }
  return "none";
}

TEST(ErrorTest, EveryHandlerSeesIt) {
  const auto call = [] { throw make_error<WorldTensor>(Narrow(3)); };
  EXPECT_EQ(caught<Narrow>(call), "narrow");
  EXPECT_EQ(caught<Kind>(call), "narrow");
  EXPECT_EQ(caught<Error>(call), "narrow");
  EXPECT_EQ(caught<WorldError>(call), "narrow");
  EXPECT_EQ(caught<std::exception>(call), "narrow");
  EXPECT_EQ(caught<std::runtime_error>(call), "another");
}

TEST(ErrorTest, WithoutAWorldItIsTheStandardLibrarys) {
  const auto wrong = [] { throw make_error<void>(ValueError("x")); };
  EXPECT_EQ(caught<std::invalid_argument>(wrong), "x");
  EXPECT_EQ(caught<ValueError>(wrong), "x");
  const auto other = [] { throw make_error<void>(Kind("y")); };
  EXPECT_EQ(caught<std::runtime_error>(other), "y");
  EXPECT_EQ(caught<std::invalid_argument>(other), "another");
}

TEST(ErrorTest, ErrorsOfCodeThatKnowsNoWorldGetOne) {
  const auto in_world = [](auto call) {
    return [call] { with_errors<WorldTensor, Narrow, Kind>(call); };
  };
  const auto narrow = in_world([] { throw make_error<void>(Narrow(4)); });
  EXPECT_EQ(caught<WorldError>(narrow), "narrow");
  try {
    narrow();
  } catch (const Narrow& error) {
    EXPECT_EQ(error.number, 4);
  }
  EXPECT_EQ(caught<Kind>(in_world([] { throw make_error<void>(Kind("k")); })), "k");
  const auto unlisted = in_world([] { throw make_error<void>(ValueError("v")); });
  EXPECT_EQ(caught<WorldError>(unlisted), "v");
  EXPECT_EQ(caught<ValueError>(unlisted), "v");
  const auto invalid = in_world([] { throw std::invalid_argument("i"); });
  EXPECT_EQ(caught<WorldError>(invalid), "i");
  EXPECT_EQ(caught<ValueError>(invalid), "i");
}

TEST(ErrorTest, WhatHasItsWorldOrIsNoneOfOursPassesAsItIs) {
  const auto ours = [] {
    with_errors<WorldTensor>([] { throw make_error<WorldTensor>(Kind("k")); });
  };
  EXPECT_EQ(caught<Kind>(ours), "k") << "though the kind is not listed";
  const auto other = [] { with_errors<WorldTensor>([] { throw std::out_of_range("o"); }); };
  EXPECT_EQ(caught<std::out_of_range>(other), "o");
  EXPECT_EQ(with_errors<WorldTensor>([] { return 7; }), 7);
}

}  // namespace
}  // namespace ferry
