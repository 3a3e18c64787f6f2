// The programs that ship: scenarios/programs/NAME.jsonl.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

struct ShippedProgram {
  std::string name;  // the file's name
  std::filesystem::path path;
  std::string description;  // one line, from the header's "about"
};

std::filesystem::path find_program(const std::string& name_or_path);
std::vector<ShippedProgram> list_programs();  // by name; InputError where a header is broken

}  // namespace ferry
