// The items of a sweep that was understood: its programs and cards were found and read.
//
// What an item is made of, with the digests of its inputs and Ferry's version, is the first half of
// its line in the results, and what a result is known by: another program, another figure of a card
// or another Ferry make another item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/hardware.h"
#include "scenarios/sweep.h"

namespace ferry::cli {

class Items {
 public:
  // Reads what the sweep names. Throws InputError with the file's line for what there is not.
  explicit Items(Sweep sweep);

  std::size_t size() const { return sweep_.items.size(); }
  const Sweep& sweep() const { return sweep_; }
  // Its arguments of the program `ferry`.
  std::vector<std::string> arguments(std::size_t item) const;
  // A JSON object without its braces.
  std::string head(std::size_t item) const;
  // None: no item has that head.
  std::optional<std::size_t> find(std::string_view head) const;

 private:
  struct Input {
    std::string path;
    std::string digest;
  };
  struct Card {
    Input input;
    Hardware hardware;
  };

  const std::string& value(std::size_t item, SweepKey key) const {
    return sweep_.value(sweep_.items[item], key);
  }

  Sweep sweep_;
  std::map<std::string, Input> programs_;  // by what the sweep calls them
  std::map<std::string, Card> cards_;
  std::vector<std::pair<std::size_t, std::uint32_t>> by_hash_;  // of heads, sorted
};

}  // namespace ferry::cli
