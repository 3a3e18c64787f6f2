// Writes a trace of what streams did and when, for ui.perfetto.dev and chrome://tracing.
//
// The file is Chrome's JSON in the dialect of PyTorch's profiler (Kineto). A device is a process,
// and a stream is a thread of it. A kernel or copy is a complete event ("X") of category "kernel"
// or "gpu_memcpy" with device, stream and bytes as arguments. An operator on the host has category
// "cpu_op", on a thread of the host's process. Flows ("s", "f") go from a copy to the host to the
// copy that brings the same bytes back. Counters ("C") show bytes. Callers give times in
// nanoseconds; the file has microseconds.
//
// A viewer attaches a flow to the slice that contains its time on its thread ("bp": "e"), and a
// slice does not contain its own end. So a flow begins a nanosecond before its copy ends; otherwise
// it would belong to the next copy. Source: the Trace Event Format, "Flow events"; Perfetto's JSON
// importer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/atomic_file.h"

namespace ferry {

// Used instead of a device number: the process of the host's threads.
inline constexpr std::uint32_t kKinetoHost = 1'000'000;

struct KinetoSpan {
  std::uint32_t device = 0;
  std::uint64_t stream = 0;  // on the host: the thread
  std::string_view category;
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bytes = -1;  // -1: none
};

class KinetoFile {
 public:
  // The file is written completely or not at all (formats/atomic_file.h). All functions throw
  // std::system_error if the machine fails.
  explicit KinetoFile(std::filesystem::path path);

  void name_device(std::uint32_t device, std::string_view name);
  void name_stream(std::uint32_t device, std::uint64_t stream, std::string_view name);
  void write(const KinetoSpan& span);
  // Draws a flow from the end of `from` to the start of `to`.
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
