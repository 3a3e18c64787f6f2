#include "sim/run/stage_crossings.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace ferry::sim {

namespace {

bool is_skip(const StageRoute& route, bool portals) { return portals && route.to > route.from + 1; }

// Returns the results that pass from stage `after` to the next one, by stage and number of the
// result.
std::vector<StageResult> boundary(const StagedProgram& staged, std::size_t after, bool portals) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> crossing;  // value: true with an edge
  for (const StageRoute& route : staged.routes) {
    if (is_skip(route, portals) || route.from > after || route.to <= after) continue;
    crossing[{route.from, route.result}] |= route.edge;
  }
  std::vector<StageResult> values;
  for (const auto& [result, edge] : crossing) values.push_back({result.first, result.second, edge});
  return values;
}

}  // namespace

std::vector<StageCrossings> stage_crossings(const StagedProgram& staged, bool portals) {
  std::vector<StageCrossings> crossings(staged.stages.size());
  for (std::size_t stage = 0; stage + 1 < crossings.size(); ++stage) {
    crossings[stage].leaving = boundary(staged, stage, portals);
    crossings[stage + 1].arriving = crossings[stage].leaving;
  }
  for (std::size_t stage = 0; stage < crossings.size(); ++stage) {
    const Code& code = staged.program.codes[staged.stages[stage].code];
    crossings[stage].arguments.resize(code.arguments.size(), StageCrossings::kNone);
  }
  for (const StageRoute& route : staged.routes) {
    StageCrossings& to = crossings[route.to];
    if (is_skip(route, portals)) {
      to.popped.push_back(route);
      crossings[route.from].stashed.push_back(route);
      continue;
    }
    const auto at = std::find_if(to.arriving.begin(), to.arriving.end(), [&](const auto& value) {
      return value.stage == route.from && value.result == route.result;
    });
    to.arguments[route.argument] = static_cast<std::size_t>(at - to.arriving.begin());
  }
  return crossings;
}

SkipName skip_name(const StageRoute& route) {
  return SkipName(std::to_string(route.from) + "." + std::to_string(route.result) + ">" +
                  std::to_string(route.to) + "." + std::to_string(route.argument));
}

SkipLayout layout_of(const std::vector<StageCrossings>& crossings) {
  std::vector<SkipRoute> routes;
  for (const StageCrossings& stage : crossings) {
    for (const StageRoute& route : stage.popped) {
      routes.push_back({skip_name(route), route.from, route.to});
    }
  }
  return SkipLayout(std::move(routes));
}

}  // namespace ferry::sim
