// Which card somebody meant who named none of those that ship: "4090", "A100-80GB", or what
// torch.cuda.get_device_name() returns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ferry {

struct CardName {
  std::string name;
  std::string description;
};

// "did you mean 'a100' (NVIDIA A100 …)?" of the cards that have every number of `asked` in their
// name or their description. Empty: there are none, or more than three, or `asked` has no number.
std::string card_meant(std::string_view asked, const std::vector<CardName>& cards);

}  // namespace ferry
