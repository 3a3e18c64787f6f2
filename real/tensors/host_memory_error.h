// The host tier is full, or the machine gives no more.
#pragma once

#include <stdexcept>

namespace ferry::real {

class OutOfHostMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ferry::real
