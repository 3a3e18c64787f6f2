#include "plan/floors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "formats/layout.h"
#include "plan/lower_bound.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

using Fate = Floors::Fate;

Fate fate_of(PlanChoice choice) {
  switch (choice) {
    case PlanChoice::kKeep:
      return Fate::kKept;
    case PlanChoice::kOffload:
      return Fate::kMoved;
    case PlanChoice::kRecompute:
      return Fate::kAgain;
  }
  return Fate::kSeveral;
}

void meet(Fate& fate, Fate other) {
  if (fate != other) fate = fate == Fate::kUnsaved ? other : Fate::kSeveral;
}

}  // namespace

Floors::Floors(const Program& program, const Hardware& hardware, KeepTrace trace)
    : trace_(std::move(trace)),
      link_bytes_per_us_(std::max(hardware.link.d2h_alone, hardware.link.d2h_both)) {
  if (!trace_.fails && outside_proof(program).empty()) turns_.emplace(trace_, hardware);
}

void Floors::add_storages(const Mix& mix, const Survey& survey, Sums& sums) const {
  std::vector<Fate>& fates = sums.fates;
  fates.assign(trace_.storages.size(), Fate::kUnsaved);
  std::vector<std::uint32_t> storages;  // by group
  for (std::size_t p = 0; p < trace_.packs.size(); ++p) {
    const std::uint32_t storage = trace_.packs[p].storage;
    if (storage == TracedStorage::kNobody) continue;
    const std::uint64_t group = survey.packs[p].group;
    if (storages.size() <= group) storages.resize(group + 1, TracedStorage::kNobody);
    storages[group] = storage;
    meet(fates[storage], fate_of(mix.packs[p]));
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    if (!mix.recompute[s]) continue;
    for (std::size_t i = 0; i < survey.segments[s].inputs.size(); ++i) {
      const std::uint64_t group = survey.segments[s].inputs[i].group;
      if (group >= storages.size() || storages[group] == TracedStorage::kNobody) continue;
      meet(fates[storages[group]], mix.input_moves[s][i] ? Fate::kMoved : Fate::kKept);
    }
  }
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] != Fate::kKept && fates[i] != Fate::kMoved) continue;
    std::vector<std::int64_t>& bytes = fates[i] == Fate::kKept ? sums.held : sums.moved;
    for (const Absence& absence : turns_->absences[i]) {
      bytes[absence.begin] += absence.bytes;
      bytes[absence.end] -= absence.bytes;
    }
  }
}

// Adds the times of recomputes, and their results: these are in memory until they are unpacked.
void Floors::add_recomputes(const Mix& mix, const Survey& survey, Sums& sums) const {
  std::vector<bool> made(trace_.storages.size(), false);
  // The kernel before which a storage of the current segment is unpacked last; else 0.
  std::vector<std::uint32_t> until(trace_.storages.size(), 0);
  std::vector<std::uint32_t> again;
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    if (!mix.recompute[s]) continue;
    const SurveyedSegment& segment = survey.segments[s];
    std::uint32_t first = TracedPack::kNever, last = segment.kernels;
    again.clear();
    for (std::size_t p = segment.first; p < segment.end; ++p) {
      const TracedPack& pack = trace_.packs[p];
      if (mix.packs[p] != PlanChoice::kRecompute || pack.unpacked == TracedPack::kNever) continue;
      first = std::min(first, pack.unpacked);
      last = std::max(last, pack.kernels);
      if (pack.storage == TracedStorage::kNobody) continue;
      again.push_back(pack.storage);
      until[pack.storage] = std::max(until[pack.storage], pack.unpacked);
    }
    const bool runs = first < trace_.kernels.size();
    if (runs) {
      // The recompute runs before the kernel `first`, so after the issue of every earlier kernel.
      const sim::Time rest = last < turns_->rest.size() ? turns_->rest[last] : 0;
      const sim::Time ns = turns_->rest[segment.kernels] - rest;
      sums.again[0] += ns;
      sums.again[first] -= ns;
    }
    for (const std::uint32_t storage : again) {
      const bool fresh = runs && !made[storage];
      if (fresh && sums.fates[storage] == Fate::kAgain) {
        add_held(turns_->absences[storage], first, until[storage] + 1, sums);
      }
      made[storage] = made[storage] || runs;
      until[storage] = 0;
    }
  }
}

// Adds the part of the absences in [begin, end) to the bytes that are in memory.
void Floors::add_held(const std::vector<Absence>& absences, std::uint32_t begin, std::uint32_t end,
                      Sums& sums) {
  for (const Absence& absence : absences) {
    const std::uint32_t from = std::max(absence.begin, begin);
    const std::uint32_t until = std::min(absence.end, end);
    if (from >= until) continue;
    sums.held[from] += absence.bytes;
    sums.held[until] -= absence.bytes;
  }
}

// Adds waits for the window: before it sends a tensor, the offloader makes the computing stream
// wait until the window has room.
void Floors::add_waits(const Candidate& candidate, const Survey& survey, Sums& sums) const {
  if (!candidate.options || candidate.options->window_bytes == kAutomatic) return;
  const CoreOptions& options = *candidate.options;
  std::vector<bool> sent;  // by group
  std::int64_t bytes = 0;
  const auto send = [&](const PackedTensor& tensor, std::uint32_t kernel) {
    if (sent.size() <= tensor.group) sent.resize(tensor.group + 1, false);
    const Hull extent = hull(tensor.layout);
    const std::int64_t here = extent.end_bytes - extent.begin_bytes;
    if (sent[tensor.group] || tensor.exempt || here < options.min_bytes) return;
    sent[tensor.group] = true;
    const std::int64_t copied = bytes - std::min(bytes, options.window_bytes);
    sums.begins[kernel] = std::max(sums.begins[kernel], out_ns(copied));
    bytes += here;
  };
  std::size_t segment = 0;
  for (std::size_t p = 0; p < trace_.packs.size(); ++p) {
    for (; segment < survey.segments.size() && survey.segments[segment].first <= p; ++segment) {
      const SurveyedSegment& here = survey.segments[segment];
      for (std::size_t i = 0; candidate.mix.recompute[segment] && i < here.inputs.size(); ++i) {
        if (candidate.mix.input_moves[segment][i]) send(here.inputs[i], here.kernels);
      }
    }
    if (candidate.mix.packs[p] == PlanChoice::kOffload) {
      send(survey.packs[p], trace_.packs[p].kernels);
    }
  }
}

sim::Time Floors::out_ns(std::int64_t bytes) const {
  return static_cast<sim::Time>(Wide{bytes} * 1000 / link_bytes_per_us_);
}

Floor Floors::of(const Candidate& candidate, const Survey& survey,
                 std::int64_t budget_bytes) const {
  Floor floor;
  floor.step_ns = trace_.optimizer_ns;
  floor.bytes = trace_.optimizer_bytes;
  if (!turns_ || candidate.trl || survey.packs.size() != trace_.packs.size()) return floor;
  // With spans the survey lists other tensors than the trace, even if it has as many.
  if (candidate.spanned) return floor;
  const std::size_t turns = trace_.kernels.size();
  if (turns == 0) return floor;
  Sums sums;
  for (auto* each : {&sums.held, &sums.moved}) each->assign(turns + 1, 0);
  for (auto* each : {&sums.again, &sums.begins}) each->assign(turns + 1, 0);
  add_storages(candidate.mix, survey, sums);
  add_recomputes(candidate.mix, survey, sums);
  add_waits(candidate, survey, sums);
  std::int64_t held = 0, moved = 0;
  sim::Time again = 0;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    held += sums.held[turn];
    moved += sums.moved[turn];
    again += sums.again[turn];
    const std::int64_t present = turns_->needed[turn] + held;
    floor.bytes = std::max(floor.bytes, present);
    sim::Time begin = std::max(turns_->begins[turn], sums.begins[turn]);
    const std::int64_t absent = present + moved - budget_bytes;
    if (moved > 0 && absent > 0) begin = std::max(begin, out_ns(std::min(absent, moved)));
    const sim::Time end = begin + turns_->rest[turn] + again;
    floor.step_ns = std::max(floor.step_ns, end + trace_.optimizer_ns);
  }
  return floor;
}

}  // namespace ferry::plan
