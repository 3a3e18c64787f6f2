#include "cli/verify/tried_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "verify/campaign/replay_line.h"
#include "verify/core/core_trials.h"

namespace ferry::cli {

using Json = nlohmann::json;

Json to_json(const verify::Coverage& coverage) {
  return {{"programs", coverage.programs},     {"runs", coverage.runs},
          {"classes", coverage.classes},       {"cut_off", coverage.cut_off},
          {"operations", coverage.operations}, {"device_operations", coverage.device_operations},
          {"chosen", coverage.chosen},         {"schedules", coverage.schedules},
          {"failures", coverage.failures},     {"steps", coverage.steps},
          {"asked", coverage.asked},           {"features", coverage.features}};
}

verify::Coverage coverage_from(const Json& json) {
  verify::Coverage coverage;
  json.at("programs").get_to(coverage.programs);
  json.at("runs").get_to(coverage.runs);
  json.at("classes").get_to(coverage.classes);
  json.at("cut_off").get_to(coverage.cut_off);
  json.at("operations").get_to(coverage.operations);
  json.at("device_operations").get_to(coverage.device_operations);
  json.at("chosen").get_to(coverage.chosen);
  json.at("schedules").get_to(coverage.schedules);
  json.at("failures").get_to(coverage.failures);
  json.at("steps").get_to(coverage.steps);
  json.at("asked").get_to(coverage.asked);
  json.at("features").get_to(coverage.features);
  return coverage;
}

std::string to_text(const verify::ProgramRange& block) {
  return Json{block.first, block.end}.dump();
}

verify::ProgramRange block_from(std::string_view text) {
  const Json json = Json::parse(text);
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>()};
}

std::string to_text(const verify::TriedBlock& tried) {
  Json json = {{"first", tried.block.first},
               {"end", tried.block.end},
               {"coverage", to_json(tried.coverage)}};
  if (tried.failure) {
    json["failure"] = {{"number", tried.failure->number},
                       {"line", verify::to_line(tried.failure->spec)},
                       {"oracle", static_cast<int>(tried.failure->verdict.oracle)},
                       {"words", tried.failure->verdict.words}};
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

verify::TriedBlock tried_from(std::string_view text) {
  const Json json = Json::parse(text);
  verify::TriedBlock tried{
      .block = {json.at("first").get<std::uint64_t>(), json.at("end").get<std::uint64_t>()},
      .coverage = coverage_from(json.at("coverage")),
      .failure = {}};
  if (json.contains("failure")) {
    const Json& failure = json.at("failure");
    tried.failure = verify::Failure{
        .number = failure.at("number").get<std::uint64_t>(),
        .spec = verify::parse_line(failure.at("line").get<std::string>(), {&verify::core_trials()}),
        .verdict = {.oracle = static_cast<verify::Oracle>(failure.at("oracle").get<int>()),
                    .words = failure.at("words").get<std::string>()}};
  }
  return tried;
}

}  // namespace ferry::cli
