#include "formats/program_lookup.h"

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry {

ProgramLookup::ProgramLookup(const Program& program, const std::string& file)
    : program_(program), file_(file) {
  for (Slot slot = 0; slot < program.globals.size(); ++slot) {
    const Slot alias = program.globals[slot].alias;  // a later one is an error, checked elsewhere
    storages_.push_back(alias < slot ? storages_[alias] : slot);
  }
}

const Code& ProgramLookup::code(CodeId id, CodeKind kind, std::uint32_t line) const {
  const char* what = kind == CodeKind::kBody ? "body" : "segment";
  if (id >= program_.codes.size()) {
    fail(line, "expected a " + std::string(what) + ", but there is no code " + std::to_string(id));
  }
  if (program_.codes[id].kind != kind) {
    fail(line, "expected code " + std::to_string(id) + " to be a " + what);
  }
  return program_.codes[id];
}

Hull ProgramLookup::type_hull(TypeId type, std::uint32_t line) const {
  if (type >= program_.types.size()) {
    fail(line,
         "expected a type that the program lists, but there is no type " + std::to_string(type));
  }
  return hull(program_.types[type]);
}

std::int64_t ProgramLookup::global_bytes(Slot slot) const {
  return type_hull(program_.globals[storages_[slot]].type, 0).end_bytes;
}

void ProgramLookup::check_depth(std::size_t depth, std::uint32_t line) const {
  if (depth <= limits::kDepth) return;
  fail(line, "expected codes nested at most " + std::to_string(limits::kDepth) + " deep");
}

void ProgramLookup::fail(std::uint32_t line, const std::string& message) const {
  throw InputError(file_, line, message);
}

}  // namespace ferry
