// The error of a full host tier, or of a machine without more memory.
#pragma once

#include <stdexcept>

namespace ferry::real {

class OutOfHostMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ferry::real
