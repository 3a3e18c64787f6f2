// The same in one program.
#include <cstdio>

#include "tests/oldest/guest.h"

int main() {
  std::string said;
  guest_uses(said);
  try {
    guest_throws();
  } catch (const std::exception& error) {
    said += std::string(", ") + error.what();
  }
  std::puts(said.c_str());
}
