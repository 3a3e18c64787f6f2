// What an operator's kernels and their libraries allocate besides its results.
//
// Temporaries are taken before the operator is launched and given back after it, as CUDA's host
// code does. A workspace is made where the first operator needs it, for each library, host thread
// and stream, and lives as long as the tape. PyTorch's forward is one thread and its engine, where
// recomputes run too, another, so each has its own.
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

// The implementation knows the card. Layouts are of the operator's tensors, null where it has none.
class KernelMemory {
 public:
  using Layouts = std::span<const Layout* const>;
  virtual ~KernelMemory() = default;
  // False: an operator of that name never takes any, whatever its tensors are.
  virtual bool is_asked(std::string_view op) const = 0;
  // Whether the operator makes its last result first.
  virtual bool makes_last_first(std::string_view op) const = 0;
  // The bytes of each library's workspace that the operator needs; 0: none.
  virtual std::vector<std::int64_t> workspaces(std::string_view op, Layouts inputs) const = 0;
  // Each piece's bytes as it is taken, and -k where the k-th goes before the operator's end.
  virtual std::vector<std::int64_t> temporaries(std::string_view op, Layouts inputs,
                                                Layouts outputs) const = 0;
};

// The threads that launch: of the host, and of each device's engine.
enum class MadeBy : std::uint8_t { kHost, kEngine };
using LaunchThread = std::pair<MadeBy, std::uint32_t>;

class Workspaces {
 public:
  // Of each library that has some bytes here, on the current stream.
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
