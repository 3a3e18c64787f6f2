// Encodes a trial as a short text for a replay line, with letters, digits, '-' and '_' only.
//
// The numbers of the trial stand in a fixed order. Each is written in groups of seven bits
// (LEB128), and the bytes as letters of six bits (the URL-safe alphabet of RFC 4648, without
// padding). A checksum at the end includes the version of the format. So a text of another version,
// or one that was cut off or mistyped, is rejected.
#pragma once

#include <string>
#include <string_view>

#include "verify/programs/pipeline_trial.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

std::string encode(const Trial& trial);
std::string encode(const PipelineTrial& trial);

// These two throw InputError, which says what was expected.
Trial decode_trial(std::string_view text);
PipelineTrial decode_pipeline_trial(std::string_view text);

}  // namespace ferry::verify
