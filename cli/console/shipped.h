// The cards and programs that ship with Ferry, as values of options (context.h). Such an option
// also takes a path to the user's own file.
#pragma once

#include "cli/console/context.h"
#include "cli/console/messages.h"
#include "formats/error.h"
#include "scenarios/paths.h"

namespace ferry::cli {

inline Values shipped_cards() { return {list_shipped("hardware", ".toml"), /*or_file=*/true}; }
inline Values shipped_programs() { return {list_shipped("programs", ".jsonl"), /*or_file=*/true}; }

// Reports a broken file; the caller goes on and lists the others.
inline void warn_of_unreadable(const InputError& error) { tell(error.what()); }

}  // namespace ferry::cli
