// Checks options that only make sense together with another option.
#pragma once

#include <string>

#include "formats/error.h"

namespace ferry::real::train {

// Throws InputError if `given` was typed without the option that it needs.
inline void needs(const char* given, bool is_given, bool has, const char* what) {
  if (is_given && !has) throw InputError(given, 0, std::string("expected with ") + what);
}

}  // namespace ferry::real::train
