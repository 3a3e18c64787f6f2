#include "verify/core/matrix.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "formats/parallel.h"
#include "verify/campaign/drawn_run.h"
#include "verify/campaign/replay_line.h"
#include "verify/campaign/shrink_spec.h"
#include "verify/core/cases.h"
#include "verify/core/core_trials.h"
#include "verify/report/report.h"

namespace ferry::verify {
namespace {

// Shrinking ends when no single change makes a program smaller, and that may be a large program. So
// the smallest of several counterexamples is kept: at most kKills, from the kFurther programs after
// the first one that was killed.
constexpr int kKills = 5;
constexpr std::int64_t kFurther = 60;

void keep_smallest(const DrawnRun& drawn, MatrixRow& row) {
  const Report report = explain(shrink_spec(drawn.spec, *drawn.verdict));
  const auto& hazard = report.verdict->hazard;
  // No order of this program shows who gets freed bytes next, so a free under a use is not counted.
  const bool shows =
      hazard && check::is_race(hazard->kind) && hazard->kind != check::HazardKind::kFreeUnderUse;
  row.unconfirmed |= shows && !report.confirmed;
  if (row.counterexample_ops && *row.counterexample_ops <= report.device_operations) return;
  row.counterexample_ops = report.device_operations;
  row.replay = to_line(report.spec);
}

// Returns nothing if it was stopped.
std::optional<MatrixRow> try_out(const Mutant& mutant, const MatrixOptions& options) {
  MatrixRow row;
  row.mutant = mutant;
  row.test = unit_test(mutant);
  if (!row.test.empty()) return row;
  if (const MutantCase* own = own_case(mutant)) {
    row.killed_by_own_case = (*own)(no_mutant()) && !(*own)(mutant);
    row.tests = 1;
    return row;
  }
  std::int64_t programs = options.programs;
  int kills = 0;
  for (std::int64_t i = 0; i < programs && kills < kKills; ++i) {
    if (options.stop && options.stop()) return std::nullopt;
    const DrawnRun drawn =
        try_drawn(core_trials(), mutant, options.seed, static_cast<std::uint64_t>(i));
    if (kills == 0) ++row.tests;
    if (!drawn.verdict) continue;
    if (kills++ == 0) {
      row.oracle = drawn.verdict->oracle;
      programs = std::min(programs, i + kFurther);
    }
    if (drawn.verdict->oracle == row.oracle) keep_smallest(drawn, row);
  }
  return row;
}

}  // namespace

std::vector<MatrixRow> mutation_matrix(const std::vector<Mutant>& mutants,
                                       const MatrixOptions& options) {
  std::vector<std::optional<MatrixRow>> ready(mutants.size());
  std::mutex mutex;
  const auto try_one = [&](std::size_t i) {
    ready[i] = try_out(mutants[i], options);
    const std::lock_guard lock(mutex);
    if (ready[i] && options.progress) options.progress(mutants[i]);
  };
  in_parallel(mutants.size(), try_one, static_cast<std::size_t>(std::max(options.jobs, 1)));
  std::vector<MatrixRow> rows;
  for (std::optional<MatrixRow>& row : ready) {
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace ferry::verify
