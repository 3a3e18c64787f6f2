// Every reader of JSON, both ways: what nobody asks for is skipped, whatever it is and wherever an
// object stands; and each key that a reader asks for is refused by its name where its value is
// wrong, with the line.
#include "formats/json_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "formats/decision_log.h"
#include "formats/hazard_file.h"
#include "formats/line_source.h"
#include "formats/plan_file.h"
#include "formats/profile.h"
#include "formats/staged_plan.h"
#include "formats/stream_log.h"
#include "tests/formats/sample.h"

namespace ferry {
namespace {

using testing::error_of;
using testing::kSample;

const std::string kPlan = R"({
  "ferry": "plan",
  "schema": 1,
  "program": {"name":"gpt2","digest":"0123456789abcdef"},
  "hardware": "rtx4090",
  "policy": "mixed",
  "alloc_conf": "expandable_segments:True",
  "options": {"window_packs":5,"bytes_min":-1},
  "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "segments": [
    {"name":"h.0","recompute":true},
    {"name":"h.1","recompute":false}
  ],
  "entries": [
    {"pack":0,"op":"Mm","dtype":"bf16","shape":[2,3],"strides":[1,2],"group":7,"decision":"keep"},
    {"pack":0,"op":"Mm","dtype":"f32","shape":[],"strides":[],"group":8,"decision":"offload","segment":0}
  ]
}
)";
const std::string kSpans = R"({"ferry": "plan", "schema": 1,
  "program": {"name":"gpt2","digest":"0"}, "hardware": "rtx4090", "policy": "mixed",
  "options": {}, "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "spans": [
    {"first":1,"first_op":"a","last":9,"last_op":"b","keep":[4],"inner":[{"first":2,"first_op":"c","last":3,"last_op":"d","keep":[]}]}
  ],
  "entries": []}
)";
const std::string kStaged = R"({
  "ferry": "pipeline plan",
  "schema": 1,
  "program": {"name":"gpt2","digest":"0123456789abcdef"},
  "hardware": "h100",
  "policy": "per-stage",
  "schedule": "1f1b",
  "devices": 1,
  "chunks": 4,
  "options": {"window_packs":5,"bytes_min":-1},
  "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "stages": [{"units":2,"first_unit":"begin","last_unit":"h.0","policy":"keep"}]
}
)";
const std::string kHazard =
    R"({"ferry":"hazard","schema":1,"system":"one","what":"two","source":"","verdicts":[{"kind":"reuse","earlier":2,"later":3}],"schedule":"2@3","seen":"é"}
{"op":"kernel","stream":"a","reads":[],"writes":["x"]}
{"op":"kernel","stream":"b","reads":["x"],"writes":[]}
)";
const std::string kLog = R"({"op":"stream","id":3,"kind":"blocking","device":1,"thread":"t"}
{"op":"alloc","stream":3,"address":512,"bytes":1024,"pool":"caching"}
{"op":"kernel","stream":3,"reads":["x"],"writes":[{"address":512,"bytes":64}],"name":"k","where":"a.py:1"}
{"op":"copy","stream":3,"dst":"y","src":{"address":512,"bytes":64},"dst_kind":"pinned","src_kind":"device","api":"sync","blocked":true}
{"op":"record","stream":3,"event":"e"}
{"op":"event_query","event":"e","result":"done"}
{"op":"record_use","stream":3,"buffer":{"address":512,"bytes":64},"event":"e"}
{"op":"release","token":4}
)";
const std::string kProfile = R"({"schemaVersion":1,
"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":"t","ts":1,"dur":2,"args":{"External id":1,"Input Dims":[[2,3],[[4]]],"Input type":["float","TensorList"]}},
{"ph":"X","cat":"kernel","dur":2.5,"args":{"External id":1}}
]}
)";

// What a reader made of a text, as a text.
struct Format {
  const char* name;
  const std::string* text;
  std::function<std::string(const std::string&)> read;
};

std::string read_log(const std::string& text) {
  std::istringstream in(text);
  LineSource lines(in, "f");
  StreamLogReader reader("f");
  std::string read;
  std::string_view line;
  StreamOp op;
  while (lines.next(line)) {
    if (!reader.read(line, lines.number(), op)) continue;
    read += std::to_string(static_cast<int>(op.kind)) + " " + std::string(op.name);
    for (const auto& ranges : {op.reads, op.writes, std::span<const Range>(&op.range, 1)}) {
      for (const Range& range : ranges) {
        read += " " + std::to_string(range.address) + "+" + std::to_string(range.bytes);
      }
    }
    read += "\n";
  }
  return read;
}

std::string read_profile(const std::string& text) {
  std::string read;
  for (const ProfiledCall& call : parse_profile(text, "f")) {
    read += call.name + " " + std::to_string(call.kernels_ns);
    for (const ProfiledInput& input : call.inputs) read += " " + json_list(input.shape);
  }
  return read;
}

std::string read_decisions(const std::string& text) {
  const DecisionLog log = parse_decision_log(text, "f");
  std::string read = decision_header(log.options);
  for (const Decision& decision : log.decisions) read += decision_line(decision);
  return read;
}

const std::string kProgram = kSample;
const std::string kDecisions = [] {
  CoreOptions options;
  options.offload = {false, true};
  return decision_header(options) + decision_line({DecisionKind::kPack, 1, 2, 4096});
}();

const std::vector<Format>& formats() {
  static const std::vector<Format> kAll = {
      {"program", &kProgram, [](const std::string& text) { return to_text(testing::parse(text)); }},
      {"plan", &kPlan, [](const std::string& text) { return to_text(parse_plan(text, "f")); }},
      {"spans", &kSpans, [](const std::string& text) { return to_text(parse_plan(text, "f")); }},
      {"pipeline plan", &kStaged,
       [](const std::string& text) { return to_text(parse_staged_plan(text, "f")); }},
      {"hazard", &kHazard,
       [](const std::string& text) {
         return to_text(parse_hazard(text, "f")).substr(0, kHazard.find('\n')) + read_log(text);
       }},
      {"log", &kLog, read_log},
      {"profile", &kProfile, read_profile},
      {"decisions", &kDecisions, read_decisions},
  };
  return kAll;
}

// Where a member begins or ends; the values of "options" and "about", whose keys are the file's
// own, are passed over.
struct Key {
  std::string name;
  std::size_t value = 0;  // where its value begins
  std::size_t end = 0;
};
struct Places {
  std::vector<std::size_t> objects;  // behind their brackets
  std::vector<Key> keys;
};

std::size_t end_of_value(std::string_view text, std::size_t at) {
  JsonScan scan(text.substr(at));
  scan.value();
  return at + scan.offset();
}

Places places_of(const std::string& text) {
  Places places;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') places.objects.push_back(i + 1);
    if (text[i] != '"') continue;
    const std::size_t end = end_of_value(text, i);
    std::size_t value = text.find_first_not_of(' ', end + 1);
    const std::string name = text.substr(i + 1, end - i - 2);
    const bool is_key = end < text.size() && text[end] == ':';
    i = end - 1;
    if (!is_key) continue;
    places.keys.push_back({name, value, end_of_value(text, value)});
    if (name == "options" || name == "about") i = places.keys.back().end - 1;
  }
  return places;
}

std::string draw_unused() {
  static const std::string kDeep(5000, '[');
  static const std::vector<std::string> kValues = {"1e400",
                                                   "-1e-400",
                                                   std::string(40, '9'),
                                                   "-" + std::string(40, '9'),
                                                   "NaN",
                                                   "-Infinity",
                                                   "inf",
                                                   "null",
                                                   "{}",
                                                   "[]",
                                                   R"({"a":1,"a":2})",
                                                   R"("\ud83d\ude00")",
                                                   R"([{"op":7,"ferry":[],"dtype":{}}])",
                                                   '"' + std::string(100'000, 'x') + '"',
                                                   kDeep + "1e400" + std::string(5000, ']')};
  return *rc::gen::elementOf(kValues);
}

RC_GTEST_PROP(JsonFieldsProp, WhatNobodyAsksForIsSkipped, ()) {
  const Format& format =
      formats()[*rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, formats().size()))];
  RC_LOG() << format.name << "\n";
  std::string text = *format.text;
  const std::vector<std::size_t> objects = places_of(text).objects;
  for (auto at = objects.rbegin(); at != objects.rend(); ++at) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    const std::string member = "\"not asked for\":" + draw_unused();
    const bool empty = text[*at] == '}';
    text.insert(*at,
                (*rc::gen::arbitrary<bool>() ? member + "," : "") + member + (empty ? "" : ","));
  }
  RC_ASSERT(format.read(text) == format.read(*format.text));
}

TEST(JsonFieldsProp, WhatIsAskedForIsRefusedByItsKeyAndLine) {
  for (const Format& format : formats()) {
    const Places places = places_of(*format.text);
    EXPECT_GT(places.keys.size(), 5u) << format.name;
    for (const Key& key : places.keys) {
      // Chrome's own list of events, of which any other file has none.
      if (key.name == "schemaVersion" || key.name == "traceEvents") continue;
      std::string text = *format.text;
      const bool nested = text[key.value] == '{' || text[key.value] == '[';
      text.replace(key.value, key.end - key.value, nested ? "7" : R"({"wrong":[1e400]})");
      const std::string refusal = error_of([&] { format.read(text); });
      const auto line =
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(key.value), '\n') + 1;
      EXPECT_NE(refusal.find('"' + key.name + '"'), std::string::npos)
          << format.name << " line " << line << ", " << key.name << ": " << refusal;
      EXPECT_NE(refusal.find(":" + std::to_string(line) + ": "), std::string::npos)
          << format.name << " line " << line << ", " << key.name << ": " << refusal;
    }
  }
}

}  // namespace
}  // namespace ferry
