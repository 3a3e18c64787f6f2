// An offloader by hand, on a host that is drawn: whether it warns that the host's memory is full
// and in which words, what it logs before anything is counted, and the bounds that adapt.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/choices/draws.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// `hears`: what is heard of a warning.
using HearsWarning = std::function<std::string(std::string)>;
std::optional<Verdict> judge_offloader(choices::Draws& draws, const HearsWarning& hears = nullptr);

}  // namespace ferry::verify
