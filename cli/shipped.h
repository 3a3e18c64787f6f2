// What ships, as lists.
#pragma once

#include <spdlog/spdlog.h>

#include "formats/error.h"

namespace ferry::cli {

// One broken file is no reason not to list the others.
inline void warn_of_unreadable(const InputError& error) { spdlog::warn("{}", error.what()); }

}  // namespace ferry::cli
