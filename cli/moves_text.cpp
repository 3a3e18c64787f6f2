#include "cli/moves_text.h"

#include <fmt/core.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "scenarios/units.h"

namespace ferry::cli {
namespace {

// A lag gets a line if compute waits for copies for more than this part of the step, or if tensors
// that should have left the device are more than this part of the peak. In thousandths.
constexpr std::int64_t kWorthPermille = 50;

std::string_view words_of(OffloadAll whose) {
  switch (whose) {
    case OffloadAll::kTrl:
      return "TRL's OffloadActivations";
    case OffloadAll::kTrlUntold:
      return "TRL's OffloadActivations without update_model_params";
    case OffloadAll::kTrlStaleKeys:
      return "TRL's OffloadActivations before July 2026";
    case OffloadAll::kRecordStream:
      return "TRL's OffloadActivations with record_stream";
  }
  return "";
}

std::string moved(const plan::PolicyRow& row, OffloadAll whose) {
  const sim::Simulation& run = row.simulation;
  const OffloadStatistics& counts = run.statistics;
  if (row.candidate.trl) {
    return fmt::format("{}: {}, simulated: {} to the host, {} back\n", row.policy, words_of(whose),
                       format_bytes(run.d2h_bytes), format_bytes(run.h2d_bytes));
  }
  const auto& options = row.candidate.options;
  if (!options || counts.offloaded_count == 0) return "";
  const std::string ahead = options->prefetch_tensors == kUnlimited
                                ? ""
                                : fmt::format(", prefetch {} tensors", options->prefetch_tensors);
  return fmt::format("{}: {} storages, {} to the host, {} back ({} copies unused); window {}{}\n",
                     row.policy, counts.offloaded_count, format_bytes(counts.offloaded_bytes),
                     format_bytes(counts.reloaded_bytes), counts.vain_count,
                     options->window_bytes == kUnlimited
                         ? fmt::format("{} tensors", options->window_tensors)
                         : format_bytes(options->window_bytes),
                     ahead);
}

bool is_worth(std::int64_t part, std::int64_t whole) {
  return part > whole / 1000 * kWorthPermille;
}

// Copies that come late cost time if compute waits for them, and memory if it does not.
std::string lag(const plan::PolicyRow& row) {
  const sim::Simulation& run = row.simulation;
  const sim::Resident& resident = run.resident;
  const std::int64_t bytes =
      resident.kept_peak_bytes + resident.waiting_peak_bytes + run.deferred_peak_bytes;
  const bool waits = is_worth(run.compute_idle_for_copies_ns, run.step_ns);
  if (!waits && !is_worth(bytes, run.device_peak_bytes)) return "";
  std::string text = waits ? fmt::format("{}: the copies are late, and compute waits {} for them",
                                         row.policy, format_time(run.compute_idle_for_copies_ns))
                           : fmt::format("{}: compute does not wait for late copies", row.policy);
  std::vector<std::string> parts;
  if (resident.kept_peak_bytes > 0) {
    parts.push_back(fmt::format("{} that is never moved, though large enough",
                                format_bytes(resident.kept_peak_bytes)));
  }
  if (resident.waiting_peak_bytes > 0) {
    parts.push_back(
        fmt::format("{} until its copy is done", format_bytes(resident.waiting_peak_bytes)));
  }
  if (run.deferred_peak_bytes > 0) {
    parts.push_back(fmt::format("{} freed but not reusable until its copy is done",
                                format_bytes(run.deferred_peak_bytes)));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "; still on the device: at most " : ", ") + parts[i];
  }
  return text + "\n";
}

}  // namespace

std::string moves_text(const plan::PolicyRow& row, OffloadAll whose) {
  const std::string text = moved(row, whose);
  return text.empty() || !row.simulation.errors.empty() ? text : text + lag(row);
}

}  // namespace ferry::cli
