#include "cli/peak_owners.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cli/page/places.h"
#include "formats/modules.h"
#include "formats/printable.h"
#include "scenarios/units.h"
#include "sim/peak/bar_table.h"

namespace ferry::cli {
namespace {

constexpr std::size_t kLines = 12;

struct ModuleOwner {
  std::string modules;  // "transformer.h.*.mlp"
  sim::MemoryKind kind{};
  std::int64_t bytes = 0;
  std::set<std::string> names;  // of these modules
};

// Finds who owns memory by the line of the program's file that made it: a module or, for lines
// outside all modules, an operator or a node of backward. The memory of backward has the line that
// made the node in forward.
class Owners {
 public:
  explicit Owners(const Program& program) : places_(program) {
    for (const Code& code : program.codes) {
      for (const Statement& statement : code.statements) {
        if (const Op* op = std::get_if<Op>(&statement.action)) add(statement.line, op->name);
        const MakeNode* node = std::get_if<MakeNode>(&statement.action);
        if (node) add(statement.line, node->name);
      }
    }
  }

  std::string of(const sim::RecordedPeak::Part& part) const {
    if (part.kind == sim::MemoryKind::kWorkspace) return "(libraries)";
    const std::string& module = places_.module_of(part.place);
    if (part.place == 0 || !module.starts_with('(')) return module;
    const auto found = names_.find(part.place);
    return found == names_.end() ? module : found->second;
  }

 private:
  void add(std::uint32_t line, const std::string& name) {
    names_.emplace(line, fmt::format("(no module: {})", name));
  }

  Places places_;
  std::map<std::uint32_t, std::string> names_;  // of operators and nodes, by line
};

// Returns the name with a star in place of each number between dots.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (begin == 0 ? "" : ".") + (number ? std::string("*") : part);
    begin = end + 1;
  }
  return text;
}

// Returns the owners, largest first; none if the program has no modules.
std::vector<ModuleOwner> owners_of(const Program& program, const sim::RunRecord& record) {
  if (!forward_code(program)) return {};
  const Owners names(program);
  std::map<std::pair<std::string, sim::MemoryKind>, ModuleOwner> owners;
  for (const sim::RecordedPeak::Part& part : sim::peak_of(record).parts) {
    const std::string name = names.of(part);
    const std::string modules = name.starts_with('(') ? name : without_numbers(name);
    ModuleOwner& owner = owners[{modules, part.kind}];
    owner.modules = modules;
    owner.kind = part.kind;
    owner.bytes += part.bytes;
    owner.names.insert(name);
  }
  std::vector<ModuleOwner> sorted;
  for (auto& [key, owner] : owners) sorted.push_back(std::move(owner));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ModuleOwner& a, const ModuleOwner& b) { return a.bytes > b.bytes; });
  return sorted;
}

struct PeakOwners {
  const plan::PolicyRow* row = nullptr;
  std::vector<ModuleOwner> owners;
};

PeakOwners peak_owners(const PolicyRequest& request, const plan::PlanResult& result) {
  const plan::PolicyRow* row = result.stopped ? nullptr : plan::best_row(result);
  if (!row || !request.peaks || !row->simulation.errors.empty()) return {};
  const auto index = static_cast<std::size_t>(row - result.rows.data());
  return {row, owners_of(request.program, request.peaks->record(index))};
}

}  // namespace

PeakRecorders::PeakRecorders(PolicyRequest& request) {
  request.peaks = this;
  request.plan.recorder = [this](Policy) { return &recorders_.emplace_back(); };
}

std::string peak_owners_text(const PolicyRequest& request, const plan::PlanResult& result) {
  const auto [row, owners] = peak_owners(request, result);
  if (owners.empty()) return "";
  const std::int64_t whole = row->simulation.peak_kinds.sum();
  peak::BarTable table{.titles = {"use"},
                       .text_title = "module",
                       .parts_title = "modules",
                       .whole_bytes = whole,
                       .lines_most = kLines};
  std::vector<peak::BarLine> lines;
  for (const ModuleOwner& owner : owners) {
    const auto kind = sim::kMemoryKindNames[static_cast<std::size_t>(owner.kind)];
    lines.push_back(
        {owner.bytes, owner.names.size(), {std::string(kind)}, printable(owner.modules)});
  }
  return fmt::format("{} at its peak of {}, by module:\n{}\n", row->policy, format_bytes(whole),
                     to_text(table, std::move(lines)));
}

nlohmann::ordered_json peak_owners_json(const PolicyRequest& request,
                                        const plan::PlanResult& result) {
  using Json = nlohmann::ordered_json;
  const auto [row, owners] = peak_owners(request, result);
  if (owners.empty()) return nullptr;
  Json json = {{"policy", row->policy}, {"owners", Json::array()}};
  for (const ModuleOwner& owner : owners) {
    const auto kind = sim::kMemoryKindNames[static_cast<std::size_t>(owner.kind)];
    json["owners"].push_back({{"modules", owner.modules},
                              {"count", owner.names.size()},
                              {"kind", kind},
                              {"bytes", owner.bytes}});
  }
  return json;
}

}  // namespace ferry::cli
