#include "formats/name_ids.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ferry {
namespace {

TEST(NameIds, IsAMapThatUsesIdsAgain) {
  EXPECT_TRUE(rc::check("names and ids as in a map, and no more ids than names at a time", [] {
    const auto draws = *rc::gen::resize(
        300, rc::gen::container<std::vector<std::pair<unsigned, bool>>>(
                 rc::gen::pair(rc::gen::inRange(0u, 60u), rc::gen::arbitrary<bool>())));
    NameIds ids;
    std::map<std::string, std::uint32_t> model;
    std::size_t most = 0;
    for (const auto& [number, add] : draws) {
      const std::string name = "a name, number " + std::to_string(number);
      if (add) {
        const std::uint32_t id = ids.intern(name);
        RC_ASSERT(model.try_emplace(name, id).first->second == id);
      } else if (model.contains(name)) {
        ids.erase(model[name]);
        model.erase(name);
      }
      most = std::max(most, model.size());
      RC_ASSERT(ids.size() == model.size());
      for (const auto& [known, id] : model) {
        RC_ASSERT(ids.find(known) == id);
        RC_ASSERT(ids.text(id) == known);
        RC_ASSERT(id < most);
      }
      RC_ASSERT(model.contains(name) || ids.find(name) == NameIds::kNone);
    }
  }));
}

}  // namespace
}  // namespace ferry
