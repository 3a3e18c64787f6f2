// Makes the tables of mutants and of schedulers over several ranks: rank 0 hands out the rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verify/share_out.h"
#include "cli/verify/verify.h"
#include "verify/core/matrix.h"
#include "verify/schedulers/scheduler_table.h"

namespace ferry::cli {

// The side of rank 0: returns the rows of mutation_matrix for all mutants, or of scheduler_table
// for all schedulers. `tick` gets the number of rows that are ready.
std::vector<verify::MatrixRow> lead_matrix(Ranks& ranks, const verify::MatrixOptions& options,
                                           const std::function<void(std::size_t rows)>& tick);
std::vector<verify::schedulers::SchedulerRow> lead_schedulers(
    Ranks& ranks, const verify::schedulers::SchedulerTableOptions& options,
    const std::function<void(std::size_t rows)>& tick);

// The work of every rank. After `stop` in the options, the current row is left out.
Crew matrix_crew(const verify::MatrixOptions& options);
Crew schedulers_crew(const verify::schedulers::SchedulerTableOptions& options);

}  // namespace ferry::cli
