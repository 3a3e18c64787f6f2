#include "cli/report/run_data.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/page/curves.h"
#include "formats/printable.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;
using sim::Time;

constexpr std::size_t kLongestGaps = 20;

// In the order of sim::Idle.
constexpr std::array<std::string_view, sim::kIdles> kIdleNames = {
    "copy_out", "copy_in", "other_stream", "earlier_step", "launch", "host_waited", "no_more_work"};

// The slices of an engine or of the host, for one lane of the picture.
struct Lane {
  std::string_view name;
  Time busy_ns = 0;
  std::vector<LaneSlice> curve;
  std::vector<sim::IdlePart> idle;
};

// Returns the first value, then the differences between neighbours.
template <class Values, class Of>
Json differences(const Values& values, const Of& of) {
  Json column = Json::array();
  std::int64_t before = 0;
  for (const auto& value : values) {
    const std::int64_t now = of(value);
    column.push_back(now - before);
    before = now;
  }
  return column;
}

class RunData {
 public:
  RunData(const sim::RunRecord& record, const Places& places, Texts& texts)
      : record_(record),
        places_(places),
        texts_(texts),
        slices_(slices(record.step_ns, kSlices)),
        peak_(sim::peak_of(record)) {}

  Json memory() const {
    const std::vector<MemoryMoment> curve = memory_curve(record_, slices_);
    Json json = {{"at_ns", differences(curve, [](const auto& each) { return each.at; })}};
    json["reserved_bytes"] =
        differences(curve, [](const auto& each) { return each.reserved_bytes; });
    for (std::size_t kind = 0; kind < sim::kMemoryKinds; ++kind) {
      json["bytes"][std::string(sim::kMemoryKindNames[kind])] =
          differences(curve, [kind](const auto& each) { return each.kinds.of[kind]; });
    }
    return json;
  }

  // Lists [module, kind, bytes], with modules in the order of their first line.
  Json peak() const {
    std::vector<std::size_t> order;
    std::map<std::size_t, sim::KindBytes> modules;
    for (const sim::RecordedPeak::Part& part : peak_.parts) {
      const std::size_t module = module_of(part.place, part.kind);
      const auto [found, fresh] = modules.try_emplace(module);
      if (fresh) order.push_back(module);
      found->second[part.kind] += part.bytes;
    }
    Json parts = Json::array();
    for (const std::size_t module : order) {
      for (std::size_t kind = 0; kind < sim::kMemoryKinds; ++kind) {
        const std::int64_t bytes = modules[module].of[kind];
        if (bytes != 0) parts.push_back({module, kind, bytes});
      }
    }
    return {{"at_ns", peak_.at}, {"parts", parts}};
  }

  Json lanes() const {
    Json json = Json::array();
    for (const auto& [name, kind] : {std::pair("compute", sim::OpKind::kKernel),
                                     {"copy out", sim::OpKind::kDeviceToHost},
                                     {"copy in", sim::OpKind::kHostToDevice}}) {
      Lane lane{name, 0, {}, sim::idle_parts(record_, kind)};
      for (const sim::RecordedWork& work : record_.work) {
        if (work.kind == kind) lane.busy_ns += work.end - work.start;
      }
      lane.curve = lane_curve(record_, kind, lane.idle, slices_);
      json.push_back(told(lane));
    }
    Lane host{"host", 0, {}, sim::host_idle_parts(record_)};
    host.curve = host_curve(record_, host.idle, slices_);
    for (const LaneSlice& slice : host.curve) host.busy_ns += slice.busy_ns;
    json.push_back(told(host));
    return json;
  }

  Json slicing() const { return {{"count", slices_.count}, {"slice_ns", slices_.slice_ns}}; }

 private:
  std::size_t module_of(std::uint32_t place, sim::MemoryKind kind = {}) const {
    if (kind == sim::MemoryKind::kWorkspace) return texts_.of("(workspaces of libraries)");
    return texts_.of(printable(places_.module_of(place)));
  }
  // Returns the name, the module and the bytes of a piece of work.
  Json work(std::size_t number) const {
    const sim::RecordedWork& work = record_.work[number];
    Json json = {{"name", texts_.of(printable(record_.names[work.name]))},
                 {"module", module_of(work.place)}};
    if (work.bytes >= 0) json["bytes"] = work.bytes;
    return json;
  }

  Json told(const Lane& lane) const {
    Json json = {{"lane", lane.name}, {"busy_ns", lane.busy_ns}};
    const auto column = [&](const auto& of) { return differences(lane.curve, of); };
    json["slices"] = {
        {"busy_ns", column([](const auto& each) { return each.busy_ns; })},
        {"begun", column([](const auto& each) { return static_cast<std::int64_t>(each.begun); })}};
    const auto of_longest = [&](const auto& of) {
      return column([&](const LaneSlice& each) -> std::int64_t {
        return each.longest ? static_cast<std::int64_t>(of(record_.work[*each.longest])) : -1;
      });
    };
    json["slices"]["name"] = of_longest([&](const sim::RecordedWork& work) {
      return texts_.of(printable(record_.names[work.name]));
    });
    json["slices"]["module"] =
        of_longest([&](const sim::RecordedWork& work) { return module_of(work.place); });
    json["idle_ns"] = Json::object();
    json["slices"]["idle_ns"] = Json::object();
    for (std::size_t why = 0; why < sim::kIdles; ++why) {
      Time all = 0;
      for (const LaneSlice& slice : lane.curve) all += slice.idle_ns[why];
      if (all == 0) continue;
      const std::string name(kIdleNames[why]);
      json["idle_ns"][name] = all;
      json["slices"]["idle_ns"][name] =
          column([why](const auto& each) { return each.idle_ns[why]; });
    }
    json["longest_gaps"] = longest_gaps(lane.idle);
    return json;
  }

  Json longest_gaps(std::vector<sim::IdlePart> idle) const {
    std::stable_sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) {
      return a.end - a.start > b.end - b.start;
    });
    idle.resize(std::min(idle.size(), kLongestGaps));
    Json gaps = Json::array();
    for (const sim::IdlePart& part : idle) {
      Json gap = {{"at_ns", part.start},
                  {"ns", part.end - part.start},
                  {"why", kIdleNames[static_cast<std::size_t>(part.why)]},
                  {"waited_for", nullptr},
                  {"before", nullptr}};
      if (part.on) gap["waited_for"] = work(*part.on);
      if (part.next) gap["before"] = work(*part.next);
      gaps.push_back(std::move(gap));
    }
    return gaps;
  }

  const sim::RunRecord& record_;
  const Places& places_;
  Texts& texts_;
  const Slices slices_;
  const sim::RecordedPeak peak_;
};

}  // namespace

std::size_t Texts::of(const std::string& text) {
  const auto [found, fresh] = numbers_.try_emplace(text, texts_.size());
  if (fresh) texts_.push_back(text);
  return found->second;
}

nlohmann::ordered_json run_data(const plan::PolicyRow& row, const sim::RunRecord& record,
                                const Places& places, Texts& texts) {
  Json json = {{"policy", row.policy}, {"drawn", row.simulation.errors.empty()}};
  if (!row.simulation.errors.empty()) return json;
  const RunData data(record, places, texts);
  json["step_ns"] = record.step_ns;
  json["capacity_bytes"] = row.device_bytes;
  json["slices"] = data.slicing();
  json["memory"] = data.memory();
  json["peak"] = data.peak();
  json["lanes"] = data.lanes();
  return json;
}

}  // namespace ferry::cli
