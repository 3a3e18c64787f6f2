// A trace of what streams did and when, which ui.perfetto.dev and chrome://tracing open.
//
// It is Chrome's JSON in the dialect of PyTorch's profiler (Kineto): a device is a process, a
// stream a thread of it, a kernel or copy a complete event ("X") of category "kernel" or
// "gpu_memcpy", whose arguments have its device, stream and bytes; an operator on the host is one
// of category "cpu_op", on a thread of the host's process. Beside them are flows ("s", "f") from a
// copy to the host to the one that brings the same bytes back, and counters ("C") of bytes. Times
// are given in nanoseconds, and written in microseconds.
//
// A viewer binds a flow's end to the slice that encloses its time on its thread ("bp": "e"), and a
// slice is over at its end: so a flow begins a nanosecond before its copy ends, else it would be
// the next copy's. Source: the Trace Event Format, "Flow events"; Perfetto's JSON importer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/atomic_file.h"

namespace ferry {

// In a device's place: the process of the host's threads.
inline constexpr std::uint32_t kKinetoHost = 1'000'000;

struct KinetoSpan {
  std::uint32_t device = 0;
  std::uint64_t stream = 0;  // on the host, the thread
  std::string_view category;
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = -1;  // -1: none
};

class KinetoFile {
 public:
  // Whole or not at all (formats/atomic_file.h). Throws std::system_error, here and below.
  explicit KinetoFile(std::filesystem::path path);

  void name_device(std::uint32_t device, std::string_view name);
  void name_stream(std::uint32_t device, std::uint64_t stream, std::string_view name);
  void write(const KinetoSpan& span);
  // From the end of one to the start of the other.
  void write_flow(std::uint64_t id, const KinetoSpan& from, const KinetoSpan& to);
  void write_memory(std::uint32_t device, std::int64_t at_ns, std::int64_t bytes,
                    std::string_view counter = "allocated");
  void commit();

 private:
  void line(std::string_view json);

  AtomicFile file_;
  bool first_ = true;
};

}  // namespace ferry
