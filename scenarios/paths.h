// Finds the data that Ferry ships: scenarios/ in the source tree, share/ferry/scenarios when
// installed.
//
// It tries in order: the environment's FERRY_SCENARIOS; ../share/ferry/scenarios beside the running
// program; the source tree that it was built from.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/error.h"

namespace ferry {

// Told of a shipped file that cannot be read.
using Unreadable = std::function<void(const InputError& error)>;

std::filesystem::path scenarios_root();

// The files that ship in a folder there ("hardware"), by name without the extension (".toml"),
// sorted. InputError if the root is no folder; nothing if it lacks the folder.
std::vector<std::string> list_shipped(std::string_view folder, std::string_view extension);

// A shipped name, in any case, or a path: a name with a '/' or the extension is a path. An unknown
// name is an InputError that lists the known ones and asks for the nearest; `what` is the kind of
// thing ("hardware").
std::filesystem::path find_shipped(std::string_view what, std::string_view folder,
                                   std::string_view extension, const std::string& name_or_path);

// What a file names: a path is relative to the file's own folder, a name that of a shipped thing.
std::string beside(const std::string& name_or_path, const std::filesystem::path& file);

}  // namespace ferry
