#include "formats/plan_file.h"

#include <map>
#include <optional>

#include "formats/atomic_file.h"
#include "formats/json_fields.h"
#include "formats/layout.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

std::string member(std::string_view key, std::int64_t value) {
  return json_text(key) + ":" + std::to_string(value);
}

std::string entry_text(const PlanEntry& entry) {
  return "{\"pack\":" + std::to_string(entry.pack) + ",\"op\":" + json_text(entry.op) +
         ",\"dtype\":" + json_text(name(entry.layout.dtype)) +
         ",\"shape\":" + json_list(entry.layout.shape) +
         ",\"strides\":" + json_list(entry.layout.strides) +
         ",\"group\":" + std::to_string(entry.group) +
         ",\"decision\":" + json_text(name(entry.decision)) + "}";
}

// Reads the members of one plan, each at its own line.
class PlanReader {
 public:
  PlanReader(std::string_view text, const std::string& file)
      : file_(file), json_(parse_json(text, file, 1, &lines_)) {}

  Plan read() {
    Fields top(json_, file_, 1);
    if (!top.has("ferry") || top.text("ferry") != "plan") {
      top.fail("expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}");
    }
    if (top.integer("schema") != 1) fields(top, "").expected("schema", "1");
    Plan plan;
    read_program(fields(top, "program"), plan);
    plan.hardware = text(top, "hardware");
    plan.policy = text(top, "policy");
    read_options(top, plan);
    read_prediction(fields(top, "predicted"), plan.predicted);
    read_entries(top, plan);
    top.finish();
    return plan;
  }

 private:
  Fields fields(Fields& top, std::string_view key) {
    if (key.empty()) return Fields(json_, file_, lines_.line_of("schema"));
    return Fields(top.at(key), file_, lines_.line_of(key));
  }

  std::string text(Fields& top, std::string_view key) {
    if (!top.at(key).is_string())
      Fields(json_, file_, lines_.line_of(key)).expected(key, "a string");
    return top.text(key);
  }

  static void read_program(Fields program, Plan& plan) {
    plan.program = program.text("name");
    plan.program_digest = program.text("digest");
    program.finish();
  }

  void read_options(Fields& top, Plan& plan) {
    Fields options = fields(top, "options");
    for (const auto& item : top.at("options").items()) {
      constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
      plan.options.emplace_back(item.key(), options.integer(item.key(), kLeast));
    }
  }

  static void read_prediction(Fields predicted, Prediction& prediction) {
    prediction = {.peak_bytes = predicted.integer("peak"),
                  .reserved_bytes = predicted.integer("reserved"),
                  .host_bytes = predicted.integer("host"),
                  .step_ns = predicted.integer("step_ns")};
    predicted.finish();
  }

  void read_entries(Fields& top, Plan& plan) {
    const Json& entries = top.at("entries");
    if (!entries.is_array()) {
      Fields(json_, file_, lines_.line_of("entries")).expected("entries", "a list");
    }
    std::map<std::uint64_t, PlanChoice> groups;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Fields line(entries[i], file_, lines_.line_of("entries/" + std::to_string(i)));
      PlanEntry entry = read_entry(line);
      if (entry.pack != plan.entries.size()) {
        line.expected("pack", std::to_string(plan.entries.size()) + ": every pack has its entry");
      }
      const auto [group, fresh] = groups.try_emplace(entry.group, entry.decision);
      if (!fresh && group->second != entry.decision) {
        line.expected("decision", "one decision for all of group " + std::to_string(entry.group));
      }
      plan.entries.push_back(std::move(entry));
    }
  }

  static PlanEntry read_entry(Fields& line) {
    PlanEntry entry;
    entry.pack = static_cast<std::uint64_t>(line.integer("pack"));
    entry.op = line.text("op");
    line.at("strides");  // always written
    if (line.has("offset")) line.fail("unknown key \"offset\"");
    entry.layout = line.layout();
    entry.group = static_cast<std::uint64_t>(line.integer("group"));
    const std::string decision = line.text("decision");
    if (decision != "keep" && decision != "offload") {
      line.expected("decision", "\"keep\" or \"offload\"");
    }
    entry.decision = decision == "keep" ? PlanChoice::kKeep : PlanChoice::kOffload;
    line.finish();
    return entry;
  }

  const std::string& file_;
  JsonLines lines_;
  Json json_;
};

}  // namespace

std::string_view name(PlanChoice choice) {
  return choice == PlanChoice::kKeep ? "keep" : "offload";
}

std::string to_text(const Plan& plan) {
  std::string text = "{\n  \"ferry\": \"plan\",\n  \"schema\": 1,\n";
  text += "  \"program\": {\"name\":" + json_text(plan.program) +
          ",\"digest\":" + json_text(plan.program_digest) + "},\n";
  text += "  \"hardware\": " + json_text(plan.hardware) + ",\n";
  text += "  \"policy\": " + json_text(plan.policy) + ",\n  \"options\": {";
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    text += (i == 0 ? "" : ",") + member(plan.options[i].first, plan.options[i].second);
  }
  const Prediction& predicted = plan.predicted;
  text += "},\n  \"predicted\": {" + member("peak", predicted.peak_bytes) + "," +
          member("reserved", predicted.reserved_bytes) + "," +
          member("host", predicted.host_bytes) + "," + member("step_ns", predicted.step_ns) +
          "},\n  \"entries\": [";
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + entry_text(plan.entries[i]);
  }
  return text + (plan.entries.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

void write_plan(const std::filesystem::path& path, const Plan& plan) {
  write_file(path, to_text(plan));
}

Plan parse_plan(std::string_view text, const std::string& file) {
  return PlanReader(text, file).read();
}

Plan read_plan(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_plan(read_file(path), file);
}

}  // namespace ferry
