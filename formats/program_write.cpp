// Implements the writing half of formats/program_file.h: the canonical text, and its digest.
#include <cstdio>
#include <string_view>
#include <variant>

#include "formats/atomic_file.h"
#include "formats/digest.h"
#include "formats/json_fields.h"
#include "formats/layout.h"
#include "formats/program_file.h"

namespace ferry {
namespace {

std::string list(const std::vector<std::uint32_t>& values) {
  std::string text = "[";
  for (const std::uint32_t value : values) {
    if (text.size() > 1) text += ',';
    text += value == kNoSlot ? "null" : std::to_string(value);
  }
  return text + "]";
}

template <class Number>
void append_unless_0(std::string& text, std::string_view key, Number value) {
  if (value != 0) text.append(",\"").append(key).append("\":").append(std::to_string(value));
}

// Has one overload for each action: writes its line, without the end of line.
struct Line {
  const Program& program;

  std::string type(TypeId id) const { return json_layout(program.types.at(id)); }

  // Writes one product as its sizes, several as a list of these.
  static std::string matmul(const std::vector<MatrixProduct>& products) {
    std::string text = ",\"matmul\":", separator = products.size() > 1 ? "[" : "";
    for (const MatrixProduct& each : products) {
      text += separator + json_list({each.batch, each.m, each.n, each.k});
      separator = ",";
    }
    if (products.size() > 1) text += "]";
    const std::int64_t aligned = products[0].aligned_bytes;
    return aligned == 16 ? text : text + ",\"aligned\":" + std::to_string(aligned);
  }

  std::string operator()(const Op& op) const {
    std::string text = "{\"op\":" + json_text(op.name) + ",\"in\":" + list(op.in) + ",\"out\":[";
    for (std::size_t i = 0; i < op.out.size(); ++i) {
      text += (i == 0 ? "{\"slot\":" : ",{\"slot\":") + std::to_string(op.out[i]) + "," +
              type(op.types.at(i)) + "}";
    }
    text += "]";
    if (!op.writes.empty()) text += ",\"writes\":" + list(op.writes);
    append_unless_0(text, "flops", op.flops);
    append_unless_0(text, "read", op.read_bytes);
    append_unless_0(text, "written", op.written_bytes);
    if (op.kernels != 1) text += ",\"kernels\":" + std::to_string(op.kernels);
    if (!op.products.empty()) text += matmul(op.products);
    append_unless_0(text, "ns", op.measured_ns);
    if (op.once) text += ",\"once\":true";
    if (op.random) text += ",\"random\":true";
    return text + "}";
  }

  std::string operator()(const View& view) const {
    return "{\"view\":" + std::to_string(view.out) + ",\"of\":" + std::to_string(view.of) + "," +
           type(view.type) + "}";
  }

  std::string operator()(const MakeNode& node) const {
    std::string text = "{\"node\":" + json_text(node.name) + ",\"id\":" + std::to_string(node.id) +
                       ",\"in\":" + list(node.in) + ",\"out\":" + list(node.out);
    if (!node.saved.empty()) text += ",\"saved\":" + list(node.saved);
    return text + ",\"body\":" + std::to_string(node.body) + "}";
  }

  std::string operator()(const Save& save) const {
    return "{\"save\":" + std::to_string(save.node) + ",\"slots\":" + list(save.slots) + "}";
  }

  std::string operator()(const Free& free) const { return "{\"free\":" + list(free.slots) + "}"; }

  std::string operator()(const Module& module) const {
    std::string text = (module.enter ? "{\"enter\":" : "{\"leave\":") + json_text(module.name);
    if (module.arguments) text += ",\"arguments\":" + list(*module.arguments);
    if (!module.called) text += ",\"called\":false";
    return text + "}";
  }

  std::string operator()(const Exclude& exclude) const {
    return exclude.begin ? "{\"exclude\":\"begin\"}" : "{\"exclude\":\"end\"}";
  }

  std::string operator()(const Call& call) const {
    std::string text = "{\"call\":" + std::to_string(call.code) + ",\"in\":" + list(call.in) +
                       ",\"out\":" + list(call.out);
    if (call.recompute == Recompute::kReplay) text += ",\"recompute\":\"replay\"";
    if (is_segment(call)) {  // otherwise the options mean nothing
      const bool reentrant = call.recompute == Recompute::kReentrant;
      text += std::string(",\"recompute\":\"") + (reentrant ? "reentrant" : "checkpoint") + "\"";
      if (!call.early_stop) text += ",\"early_stop\":false";
      if (!call.preserve_rng) text += ",\"preserve_rng\":false";
      if (!call.determinism_check) text += ",\"determinism_check\":false";
      if (call.captured > 0) text += ",\"captured\":" + std::to_string(call.captured);
    }
    return text + "}";
  }

  std::string operator()(const Backward& backward) const {
    std::string text = "{\"backward\":" + list(backward.roots);
    if (!backward.inputs.empty()) text += ",\"inputs\":" + list(backward.inputs);
    if (!backward.out.empty()) text += ",\"out\":" + list(backward.out);
    if (backward.retain_graph) text += ",\"retain_graph\":true";
    if (backward.create_graph) text += ",\"create_graph\":true";
    return text + "}";
  }

  std::string operator()(const SetStream& set) const {
    return "{\"stream\":" + std::to_string(set.stream) + "}";
  }

  std::string operator()(const Sync& sync) const {
    return "{\"sync\":" + list({sync.from, sync.to}) + "}";
  }

  std::string operator()(const RecordUse& use) const {
    return "{\"record_use\":" + std::to_string(use.slot) +
           ",\"stream\":" + std::to_string(use.stream) + "}";
  }

  std::string operator()(const Raise& raise) const {
    return "{\"raise\":" + json_text(raise.message) + "}";
  }

  std::string operator()(const Move& move) const {
    return "{\"move\":" + std::to_string(move.global) + "}";
  }

  std::string operator()(const Ambient& ambient) const {
    return "{\"ambient\":" + std::to_string(ambient.state) + "}";
  }

  std::string operator()(const When& when) const {
    return std::string("{\"when\":\"") + (when.recomputing ? "recomputing" : "first") +
           "\",\"count\":" + std::to_string(when.count) + "}";
  }
};

std::string_view name(GlobalKind kind) {
  switch (kind) {
    case GlobalKind::kParameter:
      return "parameter";
    case GlobalKind::kBuffer:
      return "buffer";
    case GlobalKind::kInput:
      return "input";
  }
  return "";
}

std::string_view name(CodeKind kind) {
  switch (kind) {
    case CodeKind::kMain:
      return "main";
    case CodeKind::kSegment:
      return "segment";
    case CodeKind::kBody:
      return "body";
  }
  return "";
}

std::string header(const Program& program) {
  std::string text = "{\"ferry\":\"program\",\"schema\":1,\"name\":" + json_text(program.name);
  std::string about;
  for (const auto& [key, value] : program.about) {
    about += (about.empty() ? "" : ",") + json_text(key) + ":" + json_text(value);
  }
  if (!about.empty()) text += ",\"about\":{" + about + "}";
  return text + "}";
}

std::string global_line(const Program& program, std::size_t number) {
  const Global& global = program.globals[number];
  std::string text =
      "{\"global\":" + std::to_string(number) + ",\"kind\":" + json_text(name(global.kind)) +
      ",\"name\":" + json_text(global.name) + "," + json_layout(program.types.at(global.type));
  if (global.requires_grad) text += ",\"grad\":true";
  if (global.alias != kNoSlot) text += ",\"alias\":" + std::to_string(global.alias);
  return text + "}";
}

std::string code_line(const Code& code, std::size_t number) {
  std::string text =
      "{\"code\":" + std::to_string(number) + ",\"kind\":" + json_text(name(code.kind));
  if (!code.name.empty()) text += ",\"name\":" + json_text(code.name);
  if (code.kind != CodeKind::kMain) text += ",\"arguments\":" + list(code.arguments);
  if (code.kind == CodeKind::kBody) text += ",\"saved\":" + list(code.saved);
  if (code.kind != CodeKind::kMain) text += ",\"results\":" + list(code.results);
  return text + "}";
}

}  // namespace

std::string to_text(const Program& program) {
  std::string text = header(program) + "\n";
  for (std::size_t i = 0; i < program.globals.size(); ++i) text += global_line(program, i) + "\n";
  for (std::size_t i = 0; i < program.codes.size(); ++i) {
    text += code_line(program.codes[i], i) + "\n";
    for (const Statement& statement : program.codes[i].statements) {
      text += std::visit(Line{program}, statement.action) + "\n";
    }
  }
  return text;
}

void write_program(const std::filesystem::path& path, const Program& program) {
  write_file(path, to_text(program));
}

std::string digest(const Program& program) {
  Program timeless = program;
  for (Code& code : timeless.codes) {
    for (Statement& statement : code.statements) {
      if (auto* const op = std::get_if<Op>(&statement.action)) op->measured_ns = 0;
    }
  }
  return digest_of(to_text(timeless));
}

}  // namespace ferry
