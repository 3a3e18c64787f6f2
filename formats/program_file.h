// Reads and writes programs (formats/PROGRAM.md describes the file).
//
// The writer is canonical: keys in the order of PROGRAM.md, no spaces, no defaults. So a file that
// it wrote has the same bytes after it is read and written again. The reader checks only the
// grammar. formats/program_check.h checks if the program makes sense; load_program does both.
//
// Every error is an InputError with file and line: malformed or truncated JSON, a duplicate key, a
// wrong type, globals or codes whose numbers are not 0, 1, 2, …
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "formats/program.h"

namespace ferry {

Program read_program(std::istream& in, const std::string& file);
Program read_program(const std::filesystem::path& path);
Program load_program(const std::filesystem::path& path);  // reads and checks

// The first line of the file, which is enough for a list of programs.
struct ProgramHeader {
  std::string name;
  std::vector<std::pair<std::string, std::string>> about;
};

ProgramHeader read_program_header(const std::filesystem::path& path);

std::string to_text(const Program& program);
void write_program(const std::filesystem::path& path,
                   const Program& program);  // completely or not at all

// Returns the FNV-1a hash of the canonical text without measured times, as 16 hexadecimal digits.
// It identifies the step that a plan was made for. Measured times do not change it.
std::string digest(const Program& program);

}  // namespace ferry
