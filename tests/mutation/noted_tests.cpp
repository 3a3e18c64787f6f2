// Linked to the tests of a mutation build: which mutants' places each test comes by, and how long
// it takes. A line for each is added to the file FERRY_MUTANTS_NOTED: its name, its milliseconds,
// the numbers. What a process comes by before its first test is that test's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/mutation/chosen.h"

namespace ferry::mutation {
namespace {

class Notes : public testing::EmptyTestEventListener {
 public:
  explicit Notes(const char* path) : file_(path, std::ios::app) {
    reached();  // before a test forks, so that its child shares it
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    file_ << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time();
    for (const int number : reached().take()) file_ << ' ' << number;
    file_ << std::endl;
  }

 private:
  std::ofstream file_;
};

const bool noted = [] {
  const char* path = std::getenv("FERRY_MUTANTS_NOTED");
  if (!path) return false;
  testing::UnitTest::GetInstance()->listeners().Append(new Notes(path));  // which owns it
  return true;
}();

}  // namespace
}  // namespace ferry::mutation
