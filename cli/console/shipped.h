// What ships: as values of options (context.h), by name or a file of one's own; and as lists.
#pragma once

#include "cli/console/context.h"
#include "cli/console/messages.h"
#include "formats/error.h"
#include "scenarios/paths.h"

namespace ferry::cli {

inline Values shipped_cards() { return {list_shipped("hardware", ".toml"), /*or_file=*/true}; }
inline Values shipped_programs() { return {list_shipped("programs", ".jsonl"), /*or_file=*/true}; }

// One broken file is no reason not to list the others.
inline void warn_of_unreadable(const InputError& error) { tell(error.what()); }

}  // namespace ferry::cli
