// A table of kernel times: how long each operator took on one machine, by its signature.
//
// `ferry calibrate` writes it, and `ferry plan --times` takes the times of a program's ops from it,
// in place of the roofline's and of any that the program itself carries. JSON lines. Line 1 says
// what was measured and where, and a line follows for each operator with its layouts and costs:
//
//   {"ferry":"kernel times","schema":1,"device":"NVIDIA H100","about":{"model":"gpt"}}
//   {"op":"aten.mm","in":[{"dtype":"f32","shape":[8,8]},null],"out":[{"dtype":"f32","shape":[8,8]}],
//    "flops":1024,"read":512,"written":256,"ns":2100,"least_ns":2000,"samples":12}
//
// (each line is one). "ns" is the median of the samples; "writes", "flops", "read" and "written"
// are those of formats/PROGRAM.md. Lines are in the order of their signatures, so equal
// measurements are equal bytes. The reader refuses, with file and line, what is not this, and a
// signature that comes twice.
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

// The part of a line that identifies the operator.
std::string signature_text(const OpSignature& signature);

std::string to_text(const TimesTable& table);
void write_times(const std::filesystem::path& path, const TimesTable& table);
TimesTable parse_times(std::string_view text, const std::string& file);
TimesTable read_times(const std::filesystem::path& path);

// Collects the times of programs that were captured with times (an op without one is no sample). A
// body that several nodes share is one sample a program: the mean of its runs.
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

// What was measured, as `--times` names it: tables, and profiles of PyTorch's.
struct MeasuredTimes {
  std::vector<TimesTable> tables;
  ProfiledTimes profiled;
  // A table, or else a profile. Throws InputError.
  void read(const std::filesystem::path& path);
};

struct TimesUsed {
  std::int64_t measured = 0;  // ops whose signature is in a table, or whose call in a profile
  std::int64_t scaled = 0;    // ops that took the time of another call of the same operator
  std::int64_t all = 0;
};

// Gives the program's ops their times: of several tables the first that has the signature, or else
// a profile's. Where none has, the time of the operator's call in the tables that is nearest in
// work, times the ratio of what the roofline gives both; it must be of the same dtype. What is
// found in neither way keeps what it has.
TimesUsed use_times(const MeasuredTimes& measured, const Hardware& hardware, Program& program);

}  // namespace ferry
