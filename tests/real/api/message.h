#pragma once

#include <exception>
#include <functional>
#include <string>

namespace ferry {

// What the call throws says.
inline std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

}  // namespace ferry
