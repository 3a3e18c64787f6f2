// For lists of what ships, where each file is to be readable.
#pragma once

#include <gtest/gtest.h>

#include "formats/error.h"

namespace ferry {

inline void none_is_unreadable(const InputError& error) { ADD_FAILURE() << error.what(); }

}  // namespace ferry
