// The memory that an operator's kernels and their libraries allocate besides its results.
//
// Temporaries are allocated before the operator is launched and freed after it, as CUDA's host code
// does. A workspace is made at the first operator that needs it, for each library, launching thread
// and stream, and lives as long as the tape. PyTorch's forward is one thread, and its engine, which
// also recomputes, is another, so each has its own workspaces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "formats/program.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

// The implementation knows the card. Layouts are those of the operator's tensors; null if one is
// absent.
class KernelMemory {
 public:
  using Layouts = std::span<const Layout* const>;
  virtual ~KernelMemory() = default;
  // False if an operator of that name never allocates any, whatever its tensors are.
  virtual bool is_asked(std::string_view op) const = 0;
  // True if the operator makes its last result first.
  virtual bool makes_last_first(std::string_view op) const = 0;
  // The workspace bytes that the operator needs from each library; 0: none.
  virtual std::vector<std::int64_t> workspaces(std::string_view op, Layouts inputs) const = 0;
  // The bytes of each temporary in order of allocation; -k: the k-th is freed before the operator's
  // end.
  virtual std::vector<std::int64_t> temporaries(std::string_view op, Layouts inputs,
                                                Layouts outputs) const = 0;
};

// The threads that launch: host threads, and the engine thread of each device.
enum class MadeBy : std::uint8_t { kHost, kEngine };
using LaunchThread = std::pair<MadeBy, std::uint32_t>;

class Workspaces {
 public:
  // Makes, on the current stream, the workspaces of libraries that need bytes and have none yet.
  void make(std::span<const std::int64_t> bytes, LaunchThread thread, Machine& machine) {
    for (std::size_t library = 0; library < bytes.size(); ++library) {
      if (bytes[library] == 0) continue;
      Storage& made = made_[{library, thread, machine.current_stream()}];
      if (made) continue;
      made = machine.allocate(bytes[library], machine.current_stream(), Step::kUser,
                              MemoryKind::kWorkspace);
    }
  }
  std::size_t count() const { return made_.size(); }

 private:
  std::map<std::tuple<std::size_t, LaunchThread, StreamId>, Storage> made_;
};

}  // namespace ferry::sim
