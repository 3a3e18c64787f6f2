#include "sim/verify/matrix.h"

#include <mutex>
#include <utility>

#include "sim/verify/parallel.h"
#include "sim/verify/report.h"

namespace ferry::verify {
namespace {

MatrixRow try_out(const Mutant& mutant, const MatrixOptions& options) {
  MatrixRow row;
  row.mutant = mutant;
  const std::string* because = equivalent_because(mutant);
  if (because) row.equivalent_because = *because;
  if (const Case* own = own_case(mutant)) {
    if ((*own)(no_mutant()) && !(*own)(mutant)) row.killed_by = "a case of its own";
    row.tests = 1;
    return row;
  }
  const std::int64_t programs = because ? options.programs_equivalent : options.programs;
  for (std::int64_t i = 0; i < programs; ++i) {
    ++row.tests;
    const Tried tried = try_drawn(mutant, options.seed, static_cast<std::uint64_t>(i));
    if (!tried.verdict) continue;
    const Report report = explain(shrink(tried.attempt, *tried.verdict));
    row.killed_by = tried.verdict->oracle;
    row.counterexample_ops = report.device_operations;
    row.replay = to_line(report.attempt);
    const auto& hazard = report.verdict.hazard;
    row.unconfirmed = hazard && sim::is_race(hazard->kind) && !report.confirmed;
    break;
  }
  return row;
}

}  // namespace

std::vector<MatrixRow> mutation_matrix(const std::vector<Mutant>& mutants,
                                       const MatrixOptions& options) {
  std::vector<MatrixRow> rows(mutants.size());
  std::mutex mutex;
  parallel_for(mutants.size(), options.jobs, [&](std::size_t i) {
    rows[i] = try_out(mutants[i], options);
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(mutants[i]);
  });
  return rows;
}

}  // namespace ferry::verify
