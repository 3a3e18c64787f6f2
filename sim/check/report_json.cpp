// Writes a verdict as JSON, and parses the place in the name of an operation.
#include "sim/check/report_json.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace ferry::check {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr std::string_view kAt = " at ";
constexpr std::string_view kIn = " in ";
constexpr std::string_view kBackward = "the backward of ";

Json operation_json(const std::string& name) {
  const Place place = place_of(name);
  Json json = {{"name", place.operation}};
  json["file"] = place.file.empty() ? Json() : Json(place.file);
  json["line"] = place.line == 0 ? Json() : Json(place.line);
  json["function"] = place.function.empty() ? Json() : Json(place.function);
  json["of_backward"] = place.of_backward;
  return json;
}

Json to_json(const TracePin& pin) {
  return {{"thread", pin.thread},
          {"accesses", pin.accesses},
          {"stream", pin.stream},
          {"on_stream", pin.on_stream}};
}

Json to_json(const TraceUnjudged& unjudged) {
  return {{"view", operation_json(unjudged.view)},
          {"view_line", unjudged.view_line},
          {"operation", operation_json(unjudged.operation)},
          {"line", unjudged.line},
          {"count", unjudged.count},
          {"message", unjudged.message}};
}

}  // namespace

Place place_of(std::string_view name) {
  Place place{.operation = std::string(name), .file = "", .function = ""};
  const std::size_t at = name.starts_with("at ") ? 0 : name.find(kAt);
  if (at == std::string_view::npos) return place;
  std::string_view rest = name.substr(at + (at == 0 ? 3 : kAt.size()));
  const bool of_backward = rest.starts_with(kBackward);
  if (of_backward) rest.remove_prefix(kBackward.size());
  // A path may contain " in ". The last colon ends it, because no function name contains a colon.
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return place;
  const std::string_view number = rest.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), place.line);
  const std::string_view behind = number.substr(static_cast<std::size_t>(end - number.data()));
  if (error != std::errc() || (!behind.empty() && !behind.starts_with(kIn))) {
    place.line = 0;
    return place;
  }
  place.operation = name.substr(0, at);
  place.of_backward = of_backward;
  place.file = rest.substr(0, colon);
  if (!behind.empty()) place.function = behind.substr(kIn.size());
  return place;
}

Json to_json(const LogViolation& v) {
  Json buffer;
  if (!v.buffer.empty()) {
    buffer = v.buffer;
  } else if (v.range.bytes != 0) {
    buffer = {{"address", v.range.address}, {"bytes", v.range.bytes}};
  }
  const bool alone = v.previous_line == 0;
  return {
      {"kind", name(v.kind)},
      {"buffer", buffer},
      {"line", v.line},
      {"previous_line", alone ? Json() : Json(v.previous_line)},
      {"count", v.count},
      {"stream", v.by_host ? Json() : Json(v.stream)},
      {"previous_stream", alone || v.previous_by_host ? Json() : Json(v.previous_stream)},
      {"operation", operation_json(v.operation)},
      {"previous_operation", alone ? Json() : operation_json(v.previous_operation)},
      {"message", v.message},
      {"fix", v.fix},
  };
}

Json to_json(const LogReport& report) {
  const LogScope& scope = report.scope;
  Json json = {{"schema", kSchema},
               {"lines", report.lines},
               {"operations", scope.operations},
               {"streams", scope.streams.count},
               {"threads", scope.threads.count},
               {"buffers", scope.buffers.count},
               {"remembered", report.remembered}};
  if (report.stopped) json["stopped"] = true;
  json["pinned"] = Json::array();
  for (const TracePin& pin : report.pins) json["pinned"].push_back(to_json(pin));
  json["left_out"] = report.left_out;
  json["violations"] = Json::array();
  for (const LogViolation& v : report.violations) json["violations"].push_back(to_json(v));
  json["views"] = report.views;
  json["unjudged_views"] = report.unjudged_views;
  json["unjudged"] = Json::array();
  for (const TraceUnjudged& each : report.unjudged) json["unjudged"].push_back(to_json(each));
  return json;
}

}  // namespace ferry::check
