// The programs that ship: scenarios/programs/NAME.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/paths.h"

namespace ferry {

struct ShippedProgram {
  std::string name;  // the file's name
  std::filesystem::path path;
  std::string description;  // one line, from the header's "about"
};

std::filesystem::path find_program(const std::string& name_or_path);
// By name. A header that cannot be read does not hide the others: `unreadable` is called with the
// error, and the list goes on.
std::vector<ShippedProgram> list_programs(const Unreadable& unreadable);

}  // namespace ferry
