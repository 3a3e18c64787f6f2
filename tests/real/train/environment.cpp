// Before the first tensor of any test: memory is counted, and one thread computes (others spin
// while they wait, and tests run beside each other).
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "real/train/memory.h"

namespace ferry::real::train {
namespace {

class Prepare : public ::testing::Environment {
 public:
  void SetUp() override {
    count_memory();
    at::set_num_threads(1);
  }
};

[[maybe_unused]] const ::testing::Environment* const g_environment =
    ::testing::AddGlobalTestEnvironment(new Prepare);

}  // namespace
}  // namespace ferry::real::train
