// Looks up codes, types and globals of a program by number, for the checks of a program
// (program_check.cpp, code_check.h, program_work.h).
//
// A code or a type that does not exist, or a code of another kind, is an InputError with file and
// line. So the checks need not test these numbers themselves. A global that is an alias has the
// bytes of the storage it refers to. A wrong alias is not reported here (program_check.cpp does
// that), and global_bytes() does not check its slot.
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
