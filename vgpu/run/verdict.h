// What the checkers say of a run's log, on stderr: stdout is the script's.
#pragma once

#include <filesystem>
#include <string>

namespace ferry::vgpu {

// Whether the log has no violation. `name` is what the log is called in the report, "" if it is not
// kept. Throws InputError if it is no log.
bool judge(const std::filesystem::path& log, const std::string& name);

}  // namespace ferry::vgpu
