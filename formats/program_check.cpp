#include "formats/program_check.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/code_check.h"
#include "formats/layout.h"
#include "formats/limits.h"
#include "formats/program_lookup.h"
#include "formats/program_work.h"

namespace ferry {
namespace {

// Checks the program as a whole; code_check.h checks its codes.
class Checker {
 public:
  Checker(const Program& program, const std::string& file)
      : program_(program), lookup_(program, file) {}

  void run() {
    check_types();
    for (std::size_t i = 0; i < program_.globals.size(); ++i) check_global(i);
    check_main();
    check_codes();
    check_work(lookup_);
  }

 private:
  // With a When, a program is two programs: its forward, and its recompute. Both are checked.
  void check_codes() {
    for (const bool recomputing : {false, true}) {
      if (recomputing && !has_when()) return;
      summaries_.assign(program_.codes.size(), std::nullopt);
      for (CodeId code = 0; code < program_.codes.size(); ++code) summary(code, recomputing, 0);
    }
  }

  // The code's summary; `line` is that of the call which needs it.
  const CodeSummary& summary(CodeId code, bool recomputing, std::uint32_t line) {
    if (summaries_[code]) return *summaries_[code];
    for (const CodeId caller : calling_) {
      if (caller == code) lookup_.fail(line, "code " + std::to_string(code) + " calls itself");
    }
    calling_.push_back(code);
    lookup_.check_depth(calling_.size(), line);
    const auto summary_of = [&](CodeId callee, std::uint32_t at) -> const CodeSummary& {
      return summary(callee, recomputing, at);
    };
    CodeSummary made = check_code(lookup_, program_.codes[code], recomputing, summary_of);
    calling_.pop_back();
    summaries_[code] = std::move(made);
    return *summaries_[code];
  }

  void check_types() const {
    for (const Layout& type : program_.types) {
      try {
        check_storage(type);
      } catch (const LayoutError& error) {
        lookup_.fail(0, std::string("expected a tensor's type: ") + error.what());
      }
    }
  }

  void check_global(std::size_t number) {
    const Global& global = program_.globals[number];
    const std::int64_t end = lookup_.type_hull(global.type, global.line).end_bytes;
    if (global.alias == kNoSlot) {
      globals_bytes_ += end;  // each is at most kStorageBytes: no overflow
      if (globals_bytes_ <= limits::kStorageBytes) return;
      lookup_.fail(global.line, "expected globals of at most " +
                                    std::to_string(limits::kStorageBytes) + " bytes in all");
    }
    if (global.alias >= number) lookup_.fail(global.line, "expected \"alias\": an earlier global");
    const Layout& aliased = program_.types[program_.globals[global.alias].type];
    if (aliased.dtype != program_.types[global.type].dtype ||
        end > lookup_.global_bytes(global.alias)) {
      lookup_.fail(global.line, "expected the type of an alias to fit that of global " +
                                    std::to_string(global.alias) + ": its dtype, within its bytes");
    }
  }

  void check_main() const {
    std::size_t mains = 0;
    for (const Code& each : program_.codes) {
      mains += each.kind == CodeKind::kMain;
      if (mains > 1) lookup_.fail(each.line, "expected one main, found another");
    }
    if (mains == 0 || program_.main >= program_.codes.size() ||
        program_.codes[program_.main].kind != CodeKind::kMain) {
      lookup_.fail(0, "expected a code of kind main");
    }
  }

  bool has_when() const {
    for (const Code& each : program_.codes) {
      for (const Statement& statement : each.statements) {
        if (std::holds_alternative<When>(statement.action)) return true;
      }
    }
    return false;
  }

  const Program& program_;
  const ProgramLookup lookup_;
  std::vector<std::optional<CodeSummary>> summaries_;
  std::vector<CodeId> calling_;  // codes whose summaries are being made
  std::int64_t globals_bytes_ = 0;
};

}  // namespace

void check_program(const Program& program, const std::string& file) {
  Checker(program, file).run();
}

}  // namespace ferry
