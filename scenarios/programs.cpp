#include "scenarios/programs.h"

#include "formats/program_file.h"
#include "scenarios/paths.h"

namespace ferry {
namespace {

constexpr const char* kExtension = ".jsonl";

// Returns the program's "description" if it has one, else all that its "about" says.
std::string describe(const ProgramHeader& header) {
  std::string all;
  for (const auto& [key, value] : header.about) {
    if (key == "description") return value;
    all += (all.empty() ? "" : ", ") + key + " " + value;
  }
  return all.empty() ? header.name : all;
}

}  // namespace

std::filesystem::path find_program(const std::string& name_or_path) {
  return find_shipped("program", "programs", kExtension, name_or_path);
}

std::vector<ShippedProgram> list_programs(const Unreadable& unreadable) {
  std::vector<ShippedProgram> all;
  for (const std::string& name : list_shipped("programs", kExtension)) {
    std::filesystem::path path = find_program(name);
    try {
      std::string description = describe(read_program_header(path));
      all.push_back({.name = name, .path = std::move(path), .description = std::move(description)});
    } catch (const InputError& error) {
      unreadable(error);
    }
  }
  return all;
}

}  // namespace ferry
