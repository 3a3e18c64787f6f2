#include "sim/verify/report/matrix.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sim/verify/campaign/parallel.h"
#include "sim/verify/report/report.h"

namespace ferry::verify {
namespace {

// Shrinking ends where no single change makes a program smaller: from several programs, one of the
// ends is small. So many kills, of so many programs from the first one on.
constexpr int kKills = 5;
constexpr std::int64_t kFurther = 60;

void keep_smallest(const Tried& tried, MatrixRow& row) {
  const Report report = explain(shrink(tried.attempt, *tried.verdict));
  const auto& hazard = report.verdict->hazard;
  row.unconfirmed |= hazard && check::is_race(hazard->kind) && !report.confirmed;
  if (row.counterexample_ops && *row.counterexample_ops <= report.device_operations) return;
  row.counterexample_ops = report.device_operations;
  row.replay = to_line(report.attempt);
}

// None where it was stopped.
std::optional<MatrixRow> try_out(const Mutant& mutant, const MatrixOptions& options) {
  MatrixRow row;
  row.mutant = mutant;
  const std::string* because = equivalent_because(mutant);
  if (because) row.equivalent_because = *because;
  if (const MutantCase* own = own_case(mutant)) {
    row.killed_by_own_case = (*own)(no_mutant()) && !(*own)(mutant);
    row.tests = 1;
    return row;
  }
  std::int64_t programs = because ? options.programs_equivalent : options.programs;
  int kills = 0;
  for (std::int64_t i = 0; i < programs && kills < kKills; ++i) {
    if (options.stop && options.stop()) return std::nullopt;
    const Tried tried = try_drawn(mutant, options.seed, static_cast<std::uint64_t>(i));
    if (kills == 0) ++row.tests;
    if (!tried.verdict) continue;
    if (kills++ == 0) {
      row.oracle = tried.verdict->oracle;
      programs = std::min(programs, i + kFurther);
    }
    if (tried.verdict->oracle == row.oracle) keep_smallest(tried, row);
  }
  return row;
}

}  // namespace

std::vector<MatrixRow> mutation_matrix(const std::vector<Mutant>& mutants,
                                       const MatrixOptions& options) {
  std::vector<std::optional<MatrixRow>> tried(mutants.size());
  std::mutex mutex;
  parallel_for(mutants.size(), options.jobs, [&](std::size_t i) {
    tried[i] = try_out(mutants[i], options);
    const std::lock_guard lock(mutex);
    if (tried[i] && options.progress) options.progress(mutants[i]);
  });
  std::vector<MatrixRow> rows;
  for (std::optional<MatrixRow>& row : tried) {
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace ferry::verify
