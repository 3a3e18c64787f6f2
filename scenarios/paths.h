// Finds the data that ships with Ferry: scenarios/ in the source tree, or share/ferry/scenarios of
// an installation.
//
// It tries, in this order: the environment variable FERRY_SCENARIOS; ../share/ferry/scenarios
// relative to the running program; the source tree of the build.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.h"

namespace ferry {

// Called with the error of a shipped file that cannot be read.
using Unreadable = std::function<void(const InputError& error)>;

std::filesystem::path scenarios_root();

// Returns the sorted names, without the extension (".toml"), of the shipped files in a folder
// ("hardware"). Throws InputError if the root is not a folder. Empty if the folder does not exist.
std::vector<std::string> list_shipped(std::string_view folder, std::string_view extension);

// Returns the path of a shipped name (upper and lower case are the same), or the given path: a name
// with a '/' or the extension is a path. Throws InputError for an unknown name; the error lists the
// known names and suggests the nearest. `what` is the kind of file ("hardware").
std::filesystem::path find_shipped(std::string_view what, std::string_view folder,
                                   std::string_view extension, const std::string& name_or_path);

// Resolves a name or path in `file`: a path is relative to the file's folder, and the name of a
// shipped file is returned unchanged.
std::string beside(const std::string& name_or_path, const std::filesystem::path& file);

}  // namespace ferry
