#include "formats/staged_plan.h"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "formats/atomic_file.h"
#include "formats/file_kind.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

constexpr std::int64_t kStages = 4096;
constexpr std::int64_t kChunks = 1 << 20;

std::string stage_text(const PlannedStage& stage) {
  return "{\"units\":" + std::to_string(stage.units) +
         ",\"first_unit\":" + json_text(stage.first_unit) +
         ",\"last_unit\":" + json_text(stage.last_unit) +
         ",\"policy\":" + json_text(name(stage.policy)) + "}";
}

// Reads the members of one plan, each at its own line.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file)
      : file_(file), json_(parse_json(text, file, 1, &lines_)) {}

  StagedPlan read() {
    Fields top(json_, file_, 1, &lines_);
    const std::string kind = top.has("ferry") ? top.text("ferry") : "";
    if (kind != "pipeline plan") {
      const std::string expected =
          "expected a plan of `ferry plan --stages`: {\"ferry\":\"pipeline plan\",\"schema\":1,…}";
      top.fail(kind == "plan" ? expected + "; this one has no stages" : expected);
    }
    if (top.integer("schema") != 1) top.expected("schema", "1");
    StagedPlan plan;
    read_program(top.object("program"), plan);
    plan.hardware = top.text("hardware");
    plan.policy = top.text("policy");
    plan.schedule = named<ScheduleKind>(kScheduleNames, top, "schedule", at("schedule"));
    plan.devices = top.integer("devices", 1, kStages);
    plan.microbatches = top.integer("chunks", 1, kChunks);
    read_options(top, plan);
    read_prediction(top.object("predicted"), plan.predicted);
    read_stages(top, plan);
    check_schedule(plan);
    return plan;
  }

 private:
  Fields at(const std::string& path) const { return {json_, file_, lines_.line_of(path)}; }

  template <class Kind>
  static Kind named(std::span<const std::string_view> names, Fields& from, std::string_view key,
                    const Fields& where) {
    const auto found = std::find(names.begin(), names.end(), from.text(key));
    if (found != names.end()) return static_cast<Kind>(found - names.begin());
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i > 0) list += i + 1 < names.size() ? ", " : " or ";
      list += json_text(names[i]);
    }
    where.expected(key, list);
  }

  static void read_program(Fields program, StagedPlan& plan) {
    plan.program = program.text("name");
    plan.program_digest = program.text("digest");
  }

  void read_options(Fields& top, StagedPlan& plan) const {
    Fields options = top.object("options");
    for (const auto& item : json_["options"].items()) {
      constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
      plan.options.emplace_back(item.key(), options.integer(item.key(), kLeast));
    }
  }

  static void read_prediction(Fields predicted, Prediction& prediction) {
    prediction = {.peak_bytes = predicted.integer("peak"),
                  .reserved_bytes = predicted.integer("reserved"),
                  .host_bytes = predicted.integer("host"),
                  .step_ns = predicted.integer("step_ns")};
  }

  void read_stages(Fields& top, StagedPlan& plan) const {
    const Json& stages = top.at("stages");
    if (!stages.is_array() || stages.empty() || std::cmp_greater(stages.size(), kStages)) {
      at("stages").expected("stages", "a list of at least one stage");
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (!stages[i].is_object()) at("stages").expected("stages", "a list of objects");
      Fields line(stages[i], file_, lines_.line_of("stages/" + std::to_string(i)));
      PlannedStage stage;
      stage.units = line.integer("units", 1, kStages);
      stage.first_unit = line.text("first_unit");
      stage.last_unit = line.text("last_unit");
      stage.policy = named<StagePolicy>(kStagePolicyNames, line, "policy", line);
      plan.stages.push_back(std::move(stage));
    }
  }

  void check_schedule(const StagedPlan& plan) const {
    const auto stages = static_cast<std::int64_t>(plan.stages.size());
    if (stages % plan.devices != 0) {
      at("devices").expected("devices", "a divisor of the " + std::to_string(stages) + " stages");
    }
    try {
      ferry::check_schedule(plan.schedule, static_cast<std::size_t>(plan.devices),
                            static_cast<std::size_t>(stages / plan.devices),
                            static_cast<std::size_t>(plan.microbatches));
    } catch (const std::invalid_argument& error) {
      at("schedule").fail(std::string("the schedule is not for these stages: ") + error.what());
    }
  }

  const std::string& file_;
  JsonLines lines_;
  const Json json_;
};

}  // namespace

std::string to_text(const StagedPlan& plan) {
  const auto number = [](const char* key, std::int64_t value) {
    return json_text(key) + ":" + std::to_string(value);
  };
  std::string text = "{\n  \"ferry\": \"pipeline plan\",\n  \"schema\": 1,\n";
  text += "  \"program\": {\"name\":" + json_text(plan.program) +
          ",\"digest\":" + json_text(plan.program_digest) + "},\n";
  text += "  \"hardware\": " + json_text(plan.hardware) + ",\n";
  text += "  \"policy\": " + json_text(plan.policy) + ",\n";
  text += "  \"schedule\": " + json_text(name(plan.schedule)) + ",\n";
  text += "  \"devices\": " + std::to_string(plan.devices) + ",\n";
  text += "  \"chunks\": " + std::to_string(plan.microbatches) + ",\n  \"options\": {";
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    text += (i == 0 ? "" : ",") + number(plan.options[i].first.c_str(), plan.options[i].second);
  }
  const Prediction& predicted = plan.predicted;
  text += "},\n  \"predicted\": {" + number("peak", predicted.peak_bytes) + "," +
          number("reserved", predicted.reserved_bytes) + "," +
          number("host", predicted.host_bytes) + "," + number("step_ns", predicted.step_ns) +
          "},\n  \"stages\": [";
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + stage_text(plan.stages[i]);
  }
  return text + "\n  ]\n}\n";
}

void write_plan(const std::filesystem::path& path, const StagedPlan& plan) {
  write_file(path, to_text(plan));
}

StagedPlan parse_staged_plan(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

StagedPlan read_staged_plan(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string text = read_file(path);
  refuse_other_kinds(text, file, {FileKind::kPipelinePlan, FileKind::kPlan});
  return parse_staged_plan(text, file);
}

}  // namespace ferry
