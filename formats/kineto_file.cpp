#include "formats/kineto_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace ferry {
namespace {

using Json = nlohmann::ordered_json;

// Formats microseconds with three decimals, so that no nanosecond is lost.
std::string microseconds(std::int64_t ns) {
  std::string rest = std::to_string(ns % 1000);
  rest.insert(0, 3 - rest.size(), '0');
  return std::to_string(ns / 1000) + "." + rest;
}

std::string quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string place(std::uint32_t device, std::uint64_t stream) {
  return "\"pid\":" + std::to_string(device) + ",\"tid\":" + std::to_string(stream);
}

std::string metadata(std::string_view what, std::string_view key, std::uint32_t device,
                     std::uint64_t stream, std::string_view value) {
  return "{\"ph\":\"M\",\"name\":" + quoted(what) + "," + place(device, stream) + ",\"args\":{" +
         quoted(key) + ":" + quoted(value) + "}}";
}

std::string flow_end(std::string_view phase, std::uint64_t id, const KinetoSpan& span,
                     std::int64_t at_ns) {
  return "{\"ph\":" + quoted(phase) +
         ",\"cat\":\"offload\",\"name\":\"offload\",\"id\":" + std::to_string(id) + "," +
         place(span.device, span.stream) + ",\"ts\":" + microseconds(at_ns) +
         (phase == "f" ? ",\"bp\":\"e\"}" : "}");
}

}  // namespace

KinetoFile::KinetoFile(std::filesystem::path path) : file_(std::move(path)) {
  file_.write("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
}

void KinetoFile::line(std::string_view json) {
  if (!first_) file_.write(",\n");
  first_ = false;
  file_.write(json);
}

void KinetoFile::name_device(std::uint32_t device, std::string_view name) {
  line(metadata("process_name", "name", device, 0, name));
  const bool host = device == kKinetoHost;
  line(metadata("process_labels", "labels", device, 0,
                host ? "CPU" : "GPU " + std::to_string(device)));
}

void KinetoFile::name_stream(std::uint32_t device, std::uint64_t stream, std::string_view name) {
  line(metadata("thread_name", "name", device, stream, name));
}

void KinetoFile::write(const KinetoSpan& span) {
  std::string args;
  if (span.device != kKinetoHost) {
    args =
        "\"device\":" + std::to_string(span.device) + ",\"stream\":" + std::to_string(span.stream);
  }
  if (span.bytes >= 0) args += ",\"bytes\":" + std::to_string(span.bytes);
  line("{\"ph\":\"X\",\"cat\":" + quoted(span.category) + ",\"name\":" + quoted(span.name) + "," +
       place(span.device, span.stream) + ",\"ts\":" + microseconds(span.start_ns) +
       ",\"dur\":" + microseconds(span.end_ns - span.start_ns) + ",\"args\":{" + args + "}}");
}

void KinetoFile::write_flow(std::uint64_t id, const KinetoSpan& from, const KinetoSpan& to) {
  line(flow_end("s", id, from, std::max(from.start_ns, from.end_ns - 1)));
  line(flow_end("f", id, to, to.start_ns));
}

void KinetoFile::write_memory(std::uint32_t device, std::int64_t at_ns, std::int64_t bytes,
                              std::string_view counter) {
  line("{\"ph\":\"C\",\"name\":" + quoted(counter) + "," + place(device, 0) +
       ",\"ts\":" + microseconds(at_ns) + ",\"args\":{\"bytes\":" + std::to_string(bytes) + "}}");
}

void KinetoFile::commit() {
  file_.write("\n]}\n");
  file_.commit();
}

}  // namespace ferry
