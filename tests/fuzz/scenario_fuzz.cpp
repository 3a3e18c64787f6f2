// The readers of programs, plans, decision logs, hardware cards, kernel times, scenarios, sweeps,
// JSON, memory snapshots, profiles and allocator's options; the first byte says whose input the
// rest is.
//
// What is taken is written and read again where there is a writer, and must come out equal. Where
// there is none, what the reader promises of the values must hold. Then it is run (runs.h).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/alloc_conf.h"
#include "formats/decision_log.h"
#include "formats/error.h"
#include "formats/hazard_file.h"
#include "formats/json_scan.h"
#include "formats/memory_snapshot.h"
#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "formats/profile.h"
#include "formats/program_check.h"
#include "formats/program_file.h"
#include "scenarios/hardware.h"
#include "scenarios/kernel_times.h"
#include "scenarios/profiled_times.h"
#include "scenarios/roofline.h"
#include "scenarios/scenario.h"
#include "scenarios/sweep.h"
#include "scenarios/units.h"
#include "sim/gpu/snapshot_replay.h"
#include "sim/peak/snapshot_peak.h"
#include "sim/peak/stack_words.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/runs.h"

namespace ferry::fuzz {
namespace {

const std::string kFile = "folder/file";
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Program parse_program(const std::string& text) {
  std::istringstream in(text);
  return read_program(in, kFile);
}

bool makes_sense(const Program& program) {
  try {
    check_program(program, kFile);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Main's arguments are not written: a program that has some makes no sense.
void program(const std::string& text) {
  const Program first = parse_program(text);
  const std::string canonical = to_text(first);
  const Program second = parse_program(canonical);
  require(to_text(second) == canonical, "a program's text is canonical");
  require(first.types.size() == second.types.size(), "a program keeps its types");
  for (std::size_t i = 0; i < first.types.size(); ++i) {
    require(first.types[i] == second.types[i], "a program keeps its types' order");
  }
  for (std::size_t c = 0; c < first.codes.size(); ++c) {
    const auto &a = first.codes[c].statements, &b = second.codes[c].statements;
    require(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                       [](const auto& x, const auto& y) { return x.action == y.action; }),
            "a program keeps its statements");
  }
  if (!makes_sense(first)) return;
  require(makes_sense(second), "a program makes sense when read again");
  run_program(first);
}

void plan(const std::string& text) {
  const Plan first = parse_plan(text, kFile);
  require(parse_plan(to_text(first), kFile) == first, "a plan is read as it was written");
  require(planned_segments(first)->segments.size() == first.segments.size(), "a plan's segments");
  run_plan(first);
}

std::string text_of(const DecisionLog& log) {
  std::string text = decision_header(log.options);
  for (const Decision& decision : log.decisions) text += decision_line(decision);
  return text;
}

void decisions(const std::string& text) {
  const DecisionLog first = parse_decision_log(text, kFile);
  require(first.lines.size() == first.decisions.size(), "every decision has its line");
  if (first.options.offload.size() > (std::size_t{1} << 16)) return;  // takes its time
  const std::string written = text_of(first);
  const DecisionLog second = parse_decision_log(written, kFile);
  require(second.decisions == first.decisions, "decisions are read as they were written");
  require(second.options.offload == first.options.offload, "and so is which packs may move");
  require(text_of(second) == written, "and so are the options");
}

void hardware(const std::string& text) {
  const Hardware card = parse_hardware(text, kFile);
  require(card.name == "file", "a card is named as its file");
  for (const std::int64_t amount : {std::int64_t{0}, std::int64_t{1}, kMost}) {
    Op op;
    op.flops = op.read_bytes = op.written_bytes = amount;
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF8}) {
      require(kernel_ns(op, dtype, card) >= 1, "a kernel takes time");
    }
  }
  require(card.link.h2d_both > 0 && card.link.h2d_both <= card.link.h2d_alone &&
              card.link.d2h_both > 0 && card.link.d2h_both <= card.link.d2h_alone,
          "a link has rates");
  format_bytes(card.memory_bytes);
  format_time(card.link.latency_ns);
  format_bytes_per_us(card.memory_bytes_per_us);
  format_flops_per_us(card.flops_per_us[0]);
  run_card(card);
}

void times(const std::string& text) {
  const TimesTable first = parse_times(text, kFile);
  const std::string written = to_text(first);
  const TimesTable second = parse_times(written, kFile);
  require(to_text(second) == written, "a table of times is read as it was written");
  require(second.times.size() == first.times.size(), "and keeps its operators");
  for (const auto& [signature, time] : first.times) {
    require(time.ns >= time.least_ns && time.least_ns > 0 && time.samples > 0, "which take time");
  }
  run_times(first);
}

void scenario(const std::string& text) {
  const Scenario one = parse_scenario(text, kFile);
  require(one.name == "file" && !one.policies.empty(), "a scenario has a name and policies");
  require(one.budget_bytes.value_or(1) > 0 && one.microbatches > 0, "and sizes");
}

void sweep(const std::string& text) {
  const Sweep one = parse_sweep(text, kFile);
  require(!one.items.empty() && one.items.size() <= 1'000'000, "a sweep has items");
  for (const SweepItem& item : one.items) {
    for (std::size_t i = 0; i < item.size(); ++i) {
      require(item[i] < one.lists[i].values.size(), "whose values are in their lists");
    }
  }
  for (const std::string& budget : one.list(SweepKey::kBudgets).values) {
    require(sweep_budget(budget, 1000) >= 0, "a budget is a size");
  }
}

// JsonScan takes what the other library takes, and numbers that are none; not a byte order mark, or
// a byte 0 behind the text (where the other library stops).
void scan(const std::string& text) {
  std::string error;
  JsonValue value;
  JsonScan scan(text);
  try {
    value = scan.value();
    scan.finish();
  } catch (const JsonError& refused) {
    error = refused.what();
  }
  const auto has = [&text](std::string_view word) { return text.find(word) != text.npos; };
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos || has("NaN") ||
      has("nan") || has("inf") || has("Infinity")) {
    return;
  }
  nlohmann::json other;
  try {
    other = nlohmann::json::parse(text);
    require(error.empty(), "what is JSON is taken");
  } catch (const nlohmann::json::out_of_range&) {
    return;  // 1e999
  } catch (const nlohmann::json::parse_error&) {
    require(!error.empty(), "what is no JSON is refused");
    return;
  }
  if (value.kind == JsonValue::Kind::kText) {
    require(other.is_string() && other.get<std::string>() == value.text, "texts are decoded");
  }
  if (value.kind == JsonValue::Kind::kInteger && !value.negative) {
    require(other.is_number_unsigned() && other.get<std::uint64_t>() == value.magnitude,
            "integers are exact");
  }
}

void hazard(const std::string& text) {
  const HazardFile first = parse_hazard(text, kFile);
  const std::string written = to_text(first);
  require(to_text(parse_hazard(written, kFile)) == written, "a hazard is read as it was written");
  require(first.schedule.empty() == first.seen.empty(), "a schedule shows something");
  std::uint64_t operations = 0;
  first.each([&operations](std::uint64_t line, const StreamOp&) {
    require(line >= 2, "lines count from the header's");
    ++operations;
  });
  require(first.verdicts.empty() || operations > 0, "verdicts are of operations");
  run_hazard(first);
}

// Every device's moment has a sum of its own.
void explain(const MemorySnapshot& snapshot) {
  for (StackId stack = 0; stack < snapshot.stacks.size(); ++stack) {
    peak::words_of(snapshot, stack).place();
  }
  try {
    for (const peak::Moment& moment : peak::moments_of(snapshot)) {
      std::int64_t allocated = 0;
      for (const peak::LiveBlock& block : moment.blocks) {
        allocated += block.pending ? 0 : block.bytes;
      }
      require(allocated == moment.allocated_bytes, "the blocks are what is allocated");
      peak::steps_of(snapshot, moment);
    }
  } catch (const LimitReached&) {
  }
}

// What is taken is explained and replayed: the same, another, or no sense.
void snapshot(const std::string& text) {
  const MemorySnapshot first = parse_memory_snapshot(text, kFile);
  const std::string written = to_pickle(first);
  require(to_pickle(parse_memory_snapshot(written, kFile)) == written,
          "a snapshot is read as it was written");
  explain(first);
  sim::replay_snapshot(first, kFile);
}

void profile(const std::string& text) {
  const std::vector<ProfiledCall> calls = parse_profile(text, kFile);
  ProfiledTimes times;
  times.add(calls);
  for (const ProfiledCall& call : calls) {
    require(call.kernels_ns > 0, "what launched nothing is no call");
    OpSignature op;
    op.name = call.name;
    op.in.resize(call.inputs.size());
    times.find(op);
  }
}

void options(const std::string& text) {
  const AllocConf conf = parse_alloc_conf(text, kFile);
  require(parse_alloc_conf(to_string(conf), kFile) == conf,
          "options are read as they were written");
}

struct Reader {
  char letter;
  void (*run)(const std::string& text);
};
constexpr Reader kReaders[] = {{'p', program},  {'l', plan},     {'d', decisions}, {'h', hardware},
                               {'t', times},    {'s', scenario}, {'j', scan},      {'w', sweep},
                               {'m', snapshot}, {'a', options},  {'z', hazard},    {'f', profile}};

int run(std::string_view input) {
  const auto reader = std::find_if(std::begin(kReaders), std::end(kReaders), [&](const Reader& r) {
    return !input.empty() && input[0] == r.letter;
  });
  if (reader == std::end(kReaders)) return -1;  // not for the corpus
  const std::string text(input.substr(1));
  try {
    reader->run(text);
  } catch (const InputError& error) {
    require_place(error, kFile, text);
  }
  return 0;
}

}  // namespace
}  // namespace ferry::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ferry::fuzz::run({reinterpret_cast<const char*>(data), size});
}
