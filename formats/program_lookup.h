// Looks up the numbers in a program; throws the InputError that says in which line a number names
// nothing, or something of another kind.
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
  // Both must outlive it; `file` names the input in errors.
  ProgramLookup(const Program& program, const std::string& file);

  const Program& program() const { return program_; }
  const Code& code(CodeId id, CodeKind kind, std::uint32_t line) const;
  Hull type_hull(TypeId type, std::uint32_t line) const;
  std::int64_t global_bytes(Slot slot) const;

  // Limits the nesting of codes: checking or running each level needs stack.
  void check_depth(std::size_t depth, std::uint32_t line) const;

  [[noreturn]] void fail(std::uint32_t line, const std::string& message) const;

 private:
  const Program& program_;
  const std::string& file_;
  std::vector<Slot> storages_;  // by global: the one that owns the storage
};

}  // namespace ferry
