// Opens and reads files, so that every reader reports the same errors: InputError with the file's
// name and the cause. A folder is an error too.
//
// read_file takes at most limits::kFileBytes. Read larger files line by line (line_source.h).
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace ferry {

std::ifstream open_file(const std::filesystem::path& path);
std::string read_file(const std::filesystem::path& path);

}  // namespace ferry
