// A table of kernel times: how long each operator took on one machine, by its signature.
//
// `ferry calibrate` writes it. `ferry plan --times` uses it for the times of a program's ops,
// instead of the roofline's times and of times in the program. The file is JSON lines. Line 1 says
// what was measured and where; then comes a line for each operator with its layouts and costs:
//
//   {"ferry":"kernel times","schema":1,"device":"NVIDIA H100","about":{"model":"gpt"}}
//   {"op":"aten.mm","in":[{"dtype":"f32","shape":[8,8]},null],"out":[{"dtype":"f32","shape":[8,8]}],
//    "flops":1024,"read":512,"written":256,"ns":2100,"least_ns":2000,"samples":12}
//
// (an operator is one line). "ns" is the median of the samples; "writes", "flops", "read" and
// "written" are as in formats/PROGRAM.md. Lines are sorted by signature, so equal measurements give
// equal bytes. The reader rejects other files, and a signature that occurs twice, with an error
// that has file and line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "scenarios/op_signature.h"
#include "scenarios/profiled_times.h"

namespace ferry {

struct KernelTime {
  OpSignature op;
  std::int64_t ns = 0;  // the median, at least 1
  std::int64_t least_ns = 0;
  std::int64_t samples = 0;
};

struct TimesTable {
  std::string device;
  std::vector<std::pair<std::string, std::string>> about;
  std::map<std::string, KernelTime> times;  // by signature_text
};

// Returns the part of a line that identifies the operator.
std::string signature_text(const OpSignature& signature);

std::string to_text(const TimesTable& table);
void write_times(const std::filesystem::path& path, const TimesTable& table);
TimesTable parse_times(std::string_view text, const std::string& file);
TimesTable read_times(const std::filesystem::path& path);

// Collects the times of programs that were captured with times; an op without a time is not a
// sample. A body that several nodes share is one sample in each program: the mean of its runs.
class TimeSamples {
 public:
  void add(Program program);
  std::map<std::string, KernelTime> times() const;

 private:
  struct Samples {
    OpSignature op;
    std::vector<std::int64_t> ns;
  };
  std::map<std::string, Samples> samples_;
};

// The files of `--times`: tables of kernel times, and profiles of PyTorch.
struct MeasuredTimes {
  std::vector<TimesTable> tables;
  ProfiledTimes profiled;
  // Adds a table or a profile. Throws InputError.
  void read(const std::filesystem::path& path);
};

struct TimesUsed {
  std::int64_t measured = 0;  // ops whose signature is in a table, or whose call is in a profile
  std::int64_t scaled = 0;    // ops that took the time of another call of the same operator
  std::int64_t all = 0;
};

// Gives the program's ops their times. The first table that has the op's signature counts, or else
// a profile that has its call. If there is none, the time is scaled from another call of the same
// operator and dtype in the tables: the one nearest in work, by the ratio of their roofline times.
// An op without any of these keeps its time.
TimesUsed use_times(const MeasuredTimes& measured, const Hardware& hardware, Program& program);

}  // namespace ferry
