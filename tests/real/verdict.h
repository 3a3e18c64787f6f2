// What a hunt on a real device objects to: the oracle that said no, and its words.
#pragma once

#include <string>

namespace ferry::real {

struct Verdict {
  std::string oracle;
  std::string words;
};

}  // namespace ferry::real
