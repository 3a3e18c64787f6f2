// Looks up codes, types and globals of a program by number. Throws InputError, with the line, if
// there is no such number or if it is of another kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/layout.h"
#include "formats/program.h"

namespace ferry {

class ProgramLookup {
 public:
  // Both must outlive this object; `file` names the input in errors.
  ProgramLookup(const Program& program, const std::string& file);

  const Program& program() const { return program_; }
  const Code& code(CodeId id, CodeKind kind, std::uint32_t line) const;
  Hull type_hull(TypeId type, std::uint32_t line) const;
  std::int64_t global_bytes(Slot slot) const;

  // Throws if codes are nested too deep, because each level needs stack to check and to run.
  void check_depth(std::size_t depth, std::uint32_t line) const;

  [[noreturn]] void fail(std::uint32_t line, const std::string& message) const;

 private:
  const Program& program_;
  const std::string& file_;
  std::vector<Slot> storages_;  // for each global: the one that owns its storage
};

}  // namespace ferry
