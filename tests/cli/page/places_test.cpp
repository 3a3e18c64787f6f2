#include "cli/page/places.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "formats/program_file.h"

namespace ferry::cli {
namespace {

TEST(PlacesTest, AShippedProgramsLinesHaveTheirModules) {
  const Program program =
      load_program(std::string(FERRY_SOURCE_DIR "/scenarios/programs/unet.jsonl"));
  const Places places(program);
  for (const Global& global : program.globals) {
    const std::string& module = places.module_of(global.line);
    if (global.kind == GlobalKind::kInput) {
      EXPECT_EQ(module, "(inputs)");
    } else {
      EXPECT_TRUE(global.name.starts_with(module + ".")) << global.name << " in " << module;
    }
  }
  std::string inside;
  for (const Code& code : program.codes) {
    for (const Statement& statement : code.statements) {
      if (const auto* marker = std::get_if<Module>(&statement.action); marker && marker->enter) {
        inside = marker->name;
        EXPECT_EQ(places.module_of(statement.line), inside);
      }
    }
  }
  EXPECT_FALSE(inside.empty());
  EXPECT_EQ(places.module_of(0), "(the optimizer's step)");
  EXPECT_EQ(places.module_of(1), "(outside all modules)");
}

}  // namespace
}  // namespace ferry::cli
