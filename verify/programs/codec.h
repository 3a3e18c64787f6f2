// Trials as short texts, for replay lines: letters, digits, '-' and '_' alone.
//
// The numbers of a trial in a fixed order, each in groups of seven bits (LEB128), six bits to a
// letter (RFC 4648's URL-safe alphabet, unpadded), a check at the end. What was written down by
// another version of the format, was cut off or has a typo is refused.
#pragma once

#include <string>
#include <string_view>

#include "verify/programs/pipeline_trial.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

std::string encode(const Trial& trial);
std::string encode(const PipelineTrial& trial);

// Throw InputError, with what was expected.
Trial decode_trial(std::string_view text);
PipelineTrial decode_pipeline_trial(std::string_view text);

}  // namespace ferry::verify
