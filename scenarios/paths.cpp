#include "scenarios/paths.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "formats/error.h"
#include "formats/nearest.h"

namespace ferry {

namespace fs = std::filesystem;

fs::path scenarios_root() {
  if (const char* chosen = std::getenv("FERRY_SCENARIOS"); chosen != nullptr && *chosen != '\0') {
    return chosen;
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path installed = program.parent_path().parent_path() / "share/ferry/scenarios";
    if (fs::is_directory(installed, error)) return installed;
  }
  return FERRY_SOURCE_SCENARIOS;
}

std::vector<std::string> list_shipped(std::string_view folder, std::string_view extension) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path root = scenarios_root();
  if (!fs::is_directory(root, error)) {
    throw InputError(root.string(), 0,
                     "expected the folder of Ferry's cards and programs (FERRY_SCENARIOS)");
  }
  fs::directory_iterator files(root / folder, error);
  if (error) return names;
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() == extension) names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_shipped(std::string_view what, std::string_view folder, std::string_view extension,
                      const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(extension)) {
    return name_or_path;
  }
  const std::vector<std::string> names = list_shipped(folder, extension);
  if (const auto found = find_name(name_or_path, names)) {
    return scenarios_root() / folder / (names[*found] + std::string(extension));
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw InputError(name_or_path, 0,
                   "expected the path of a " + std::string(what) + " file (*" +
                       std::string(extension) + ") or one of: " +
                       (known.empty() ? "(none in " + scenarios_root().string() + ")" : known) +
                       did_you_mean(name_or_path, names));
}

std::string beside(const std::string& name_or_path, const std::filesystem::path& file) {
  const std::filesystem::path path(name_or_path);
  if (name_or_path.find('/') == std::string::npos && !path.has_extension()) return name_or_path;
  return path.is_absolute() ? name_or_path : (file.parent_path() / path).string();
}

}  // namespace ferry
