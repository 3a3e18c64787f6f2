// Guesses which shipped card a user meant by a name that no shipped card has, such as "4090",
// "A100-80GB" or a text from torch.cuda.get_device_name(). The error for an unknown card uses it
// (hardware.cpp); nearest.h cannot help there, because such names are not near.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ferry {

struct CardName {
  std::string name;
  std::string description;
};

// Returns "did you mean 'a100' (NVIDIA A100 …)?" with the cards whose name or description has every
// word of `asked` that contains a digit. Empty if there are none or more than three such cards, or
// if `asked` has no such word.
std::string card_meant(std::string_view asked, const std::vector<CardName>& cards);

}  // namespace ferry
