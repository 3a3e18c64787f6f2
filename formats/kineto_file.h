// A trace of what streams did and when, which ui.perfetto.dev and chrome://tracing open.
//
// It is Chrome's JSON in the dialect of PyTorch's profiler (Kineto): a device is a process, a
// stream a thread of it, a kernel or copy a complete event ("X") of category "kernel" or
// "gpu_memcpy", whose arguments have its device, stream and bytes. Beside them are flows ("s", "f")
// from a copy to the host to the one that brings the same bytes back, and counters ("C") of bytes
// allocated. Times are given in nanoseconds, and written in microseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/atomic_file.h"

namespace ferry {

struct KinetoSpan {
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
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
  void name_stream(std::uint32_t device, std::uint32_t stream, std::string_view name);
  void write(const KinetoSpan& span);
  // From the end of one to the start of the other.
  void write_flow(std::uint64_t id, const KinetoSpan& from, const KinetoSpan& to);
  void write_memory(std::uint32_t device, std::int64_t at_ns, std::int64_t allocated_bytes);
  void commit();

 private:
  void line(std::string_view json);

  AtomicFile file_;
  bool first_ = true;
};

}  // namespace ferry
