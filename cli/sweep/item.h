// The items of a sweep whose programs and cards were found and read.
//
// The head of an item has its values, the digests of its inputs and Ferry's version. It is the
// first half of the item's line in the results, and identifies the result: if the program, a figure
// of the card or the version of Ferry changes, it is another item.
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
  // Reads the files that the sweep names. Throws InputError with the line of the sweep's file for a
  // file that does not exist.
  explicit Items(Sweep sweep);

  std::size_t size() const { return sweep_.items.size(); }
  const Sweep& sweep() const { return sweep_; }
  // The arguments of `ferry` that run the item.
  std::vector<std::string> arguments(std::size_t item) const;
  // The head as a JSON object without its braces.
  std::string head(std::size_t item) const;
  // Returns the item with this head; empty if there is none.
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
  std::map<std::string, Input> programs_;  // by their names in the sweep
  std::map<std::string, Card> cards_;
  std::vector<std::pair<std::size_t, std::uint32_t>> by_hash_;  // (hash of the head, item), sorted
};

}  // namespace ferry::cli
