// The events of one step. lower.h converts them to a program.
//
// A tensor is a Ref: the number of a storage, and a window on it. Storages are numbered in order of
// appearance, so nothing here depends on an address. No tensor is kept alive, so a storage dies
// when the program drops it. This death is an event too.
//
// Two things tell to which node an event belongs. In forward, LibTorch counts nodes (the sequence
// number). The node that packs a tensor is the last one counted, and a node was made before an
// event if its number is less than the event's count. In backward, a node is open from its entry
// until its post hook. Work between nodes (sums of gradients, AccumulateGrad) is not recorded,
// because the interpreter of the program does it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "formats/op_call.h"
#include "formats/program.h"

namespace ferry::real::capture {

using StorageNumber = std::uint32_t;
using PackNumber = std::uint32_t;
using NodeNumber = std::int64_t;  // counted from the start of the capture

struct Ref {
  StorageNumber storage = 0;
  Layout layout;
  bool operator==(const Ref&) const = default;
  bool operator<(const Ref& other) const {
    const auto key = [](const Ref& ref) {
      return std::tie(ref.storage, ref.layout.dtype, ref.layout.offset, ref.layout.shape,
                      ref.layout.strides);
    };
    return key(*this) < key(other);
  }
};

// The target of a gradient: an output of a node, a leaf, or nothing.
struct Output {
  NodeNumber node = 0;
  std::uint32_t number = 0;
  auto operator<=>(const Output&) const = default;
};
struct Leaf {
  std::uint32_t number = 0;  // an index into Trace::leaves
};
using Edge = std::variant<std::monostate, Leaf, Output>;

struct OpEvent {
  NodeNumber made = 0;  // number of nodes made before it
  std::string name;
  std::vector<Ref> in;
  std::vector<Ref> out;  // new storages
  std::vector<std::uint32_t> writes;
  bool once = false;  // runs in forward only, no replay runs it
  OpFlags flags{};
  std::int64_t flops = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t kernels = 1;
  std::vector<MatrixProduct> products{};
  std::int64_t measured_ns = 0;
  std::optional<std::size_t> clocked;  // its number on the device's clock, read at the end
};
struct PackEvent {
  NodeNumber made = 0;
  PackNumber pack = 0;
};
struct DeathEvent {
  StorageNumber storage = 0;
};
struct DropEvent {  // a save died outside a backward, so its node did
  PackNumber pack = 0;
};
struct BackwardEvent {
  NodeNumber made = 0;
  std::vector<Output> roots;
  bool retain_graph = false;
};
struct SegmentEvent {  // a call of ferry::checkpoint begins or ends
  NodeNumber made = 0;
  std::string name;
  bool enter = true;
  std::vector<Ref> arguments;  // its arguments
  std::vector<Output> behind;  // targets of their gradients, if nodes
};
using Event = std::variant<OpEvent, PackEvent, DeathEvent, DropEvent, BackwardEvent, SegmentEvent>;

// How a storage became known.
enum class Birth : std::uint8_t {
  kGiven,  // a parameter, a buffer or an input
  kOp,     // an op made it
  kMet,    // an op read it, but nothing seen made it
  kCopy,   // unpack returned it
};

struct StorageInfo {
  std::int64_t bytes = 0;
  Birth birth = Birth::kGiven;
  bool in_backward = false;  // first seen in a backward
  bool died = false;
  std::optional<std::uint32_t> died_in;  // the backward in which it died, if any
};

struct NodeInfo {
  std::string name;
  std::vector<Edge> edges;
};

struct PackInfo {
  NodeNumber node = 0;
  Ref ref;
};

// The first run of a node in backward.
struct Body {
  std::vector<std::optional<Ref>> arguments;
  std::map<PackNumber, Ref> saved;  // the tensors that unpacking returned
  std::vector<std::optional<Ref>> results;
  std::vector<Event> events;  // ops and deaths
};

struct Given {
  GlobalKind kind = GlobalKind::kInput;
  std::string name;
  Ref ref;
  bool requires_grad = false;
};

struct LeafInfo {
  std::optional<std::uint32_t> given;  // an index into Trace::given; none if made in the step
};

struct Trace {
  std::vector<Given> given;
  std::vector<StorageInfo> storages;
  std::vector<Event> events;  // those outside backwards
  std::vector<PackInfo> packs;
  std::map<NodeNumber, NodeInfo> nodes;
  std::map<NodeNumber, Body> bodies;
  std::map<Output, Ref> tensors;  // tensors of node outputs that were seen
  std::vector<LeafInfo> leaves;
};

}  // namespace ferry::real::capture
