#include "formats/program_lookup.h"

#include "formats/error.h"

namespace ferry {

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
  if (type >= program_.types.size()) fail(line, "there is no type " + std::to_string(type));
  return hull(program_.types[type]);
}

std::int64_t ProgramLookup::global_bytes(Slot slot) const {
  while (program_.globals[slot].alias != kNoSlot) slot = program_.globals[slot].alias;
  return type_hull(program_.globals[slot].type, 0).end_bytes;
}

void ProgramLookup::check_depth(std::size_t depth, std::uint32_t line) const {
  constexpr std::size_t kDepthMax = 200;
  if (depth > kDepthMax) fail(line, "expected calls at most 200 deep");
}

void ProgramLookup::fail(std::uint32_t line, const std::string& message) const {
  throw InputError(file_, line, message);
}

}  // namespace ferry
