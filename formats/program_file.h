// Reads and writes programs (formats/PROGRAM.md describes the file).
//
// The writer is canonical: keys in PROGRAM.md's order, no spaces, defaults left out. So reading a
// file that it wrote and writing it again gives the same bytes. The reader judges the grammar
// alone: whether the program makes sense is formats/program_check.h's; load_program does both.
//
// Every error is an InputError with file and line: malformed or truncated JSON, an unknown or
// duplicate key, a wrong type, globals or codes whose numbers do not go 0, 1, 2, …
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

// The first line only: a list of programs needs no more.
struct ProgramHeader {
  std::string name;
  std::vector<std::pair<std::string, std::string>> about;
};

ProgramHeader read_program_header(const std::filesystem::path& path);

std::string to_text(const Program& program);
void write_program(const std::filesystem::path& path,
                   const Program& program);  // written whole or not at all

// FNV-1a over the canonical text without measured times, 16 hexadecimal digits. It identifies the
// step that a plan was made for, however long its ops took where they were measured.
std::string digest(const Program& program);

}  // namespace ferry
