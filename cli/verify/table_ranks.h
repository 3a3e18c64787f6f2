// The tables of mutants and of schedulers over several ranks: rank 0 hands out rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verify/share_out.h"
#include "cli/verify/verify.h"
#include "verify/core/matrix.h"
#include "verify/schedulers/scheduler_table.h"

namespace ferry::cli {

// Rank 0's side: the rows that mutation_matrix gives of all mutants, or scheduler_table of all
// schedulers. `tick` is told how many there are.
std::vector<verify::MatrixRow> lead_matrix(Ranks& ranks, const verify::MatrixOptions& options,
                                           const std::function<void(std::size_t rows)>& tick);
std::vector<verify::schedulers::SchedulerRow> lead_schedulers(
    Ranks& ranks, const verify::schedulers::SchedulerTableOptions& options,
    const std::function<void(std::size_t rows)>& tick);

// What any rank does. The options' stop leaves out the row in hand.
Crew matrix_crew(const verify::MatrixOptions& options);
Crew schedulers_crew(const verify::schedulers::SchedulerTableOptions& options);

}  // namespace ferry::cli
