#include "cli/console/messages.h"

#include <cstdio>

#include "formats/printable.h"

namespace ferry::cli {

void tell(const std::string& message) {
  const std::string line = "ferry: " + printable(message) + '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace ferry::cli
