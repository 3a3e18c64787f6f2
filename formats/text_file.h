// Opens and reads files. If that fails, the functions throw InputError with the file's name and the
// cause.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace ferry {

std::ifstream open_file(const std::filesystem::path& path);
std::string read_file(const std::filesystem::path& path);

}  // namespace ferry
