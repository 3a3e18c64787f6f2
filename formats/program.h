// A program: one training step as autograd sees it, written as code.
//
// Captured, random, hand-written and imported programs are this one type, and the tape in sim/
// interprets it. formats/PROGRAM.md describes the file; formats/program_file.h reads and writes it.
//
// A program is a table of *globals* (parameters, buffers, inputs: they live for the whole run) and
// a list of *codes*. A code is straight-line statements over *slots*; every run of a code has a
// frame of its own, so that a segment may run again with fresh storages. Slots below
// globals.size() name globals in every code; the others belong to the frame, and are assigned
// once. A storage dies when the last slot, saved tensor or gradient that refers to it dies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ferry {

enum class DType : std::uint8_t { kF64, kF32, kBF16, kF16, kF8, kI64, kI32, kI16, kI8, kU8, kBool };

// A window on a storage. Shape and strides in elements; offset in elements from the storage's
// start.
struct Layout {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  bool operator==(const Layout&) const = default;
};

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = ~Slot{0};
using TypeId = std::uint32_t;  // an index into Program::types
using CodeId = std::uint32_t;  // an index into Program::codes

// The name of an op that stands for a tensor that the step found, and that no operator made.
inline constexpr std::string_view kGivenOp = "ferry.given";

// What an operator multiplies, where that is matrices, or a convolution that is computed as one:
// `batch` times m × k by k × n.
struct MatrixProduct {
  std::int64_t batch = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // The most of 2, 4, 8 and 16 bytes that the place of every row in its three matrices is a
  // multiple of, as they lie in memory: kernels load 16 at a time where they can.
  std::int64_t aligned_bytes = 16;
  bool operator==(const MatrixProduct&) const = default;
};

// Makes the storages of its outputs, reads its inputs, writes its outputs and, in place, those
// inputs that `writes` lists (positions in `in`; each such write bumps the tensor's version).
struct Op {
  std::string name;
  std::vector<Slot> in;
  std::vector<Slot> out;
  std::vector<TypeId> types;  // of the outputs
  std::vector<std::uint32_t> writes;
  std::int64_t flops = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t measured_ns = 0;  // 0: not measured; the roofline decides
  bool once = false;         // may do more than this says, or not the same again: no replay runs it
  bool random = false;       // draws from the random generator (dropout): its values depend on the
                             // generator's state, and it moves that state on
  std::int64_t kernels = 1;  // that it runs one after the other, on a GPU
  std::vector<MatrixProduct> products{};  // one after the other, that its FLOPs are
  std::int64_t cached_bytes = 0;  // of those it reads, what a card's L2 has (scenarios/l2.h): of no
                                  // file
  bool operator==(const Op&) const = default;
};

// `out` is a window of type `type` on the storage of `of`. Costs nothing.
struct View {
  Slot out = kNoSlot;
  Slot of = kNoSlot;
  TypeId type = 0;
  bool operator==(const View&) const = default;
};

// Makes an autograd node, where grad mode is on and some input requires grad. Its edges go to where
// the gradients of `in` flow; the slots in `out` become its outputs (a slot may carry an edge and
// no tensor). `saved` are packed now, in order; a Save packs further ones, as outputs are.
struct MakeNode {
  std::string name;
  std::uint32_t id = 0;  // within the frame
  std::vector<Slot> in;
  std::vector<Slot> out;
  std::vector<Slot> saved;
  CodeId body = 0;
  bool operator==(const MakeNode&) const = default;
};

struct Save {
  std::uint32_t node = 0;
  std::vector<Slot> slots;
  bool operator==(const Save&) const = default;
};

struct Free {
  std::vector<Slot> slots;
  bool operator==(const Free&) const = default;
};

// A module boundary. `enter` and leave nest. Where it is a call of checkpoint that just ran,
// entering it has `arguments`: the tensors that the call was handed, in their order, and any slots
// that carry their edges.
struct Module {
  std::string name;
  bool enter = true;
  std::optional<std::vector<Slot>> arguments = std::nullopt;
  bool operator==(const Module&) const = default;
};

// A region whose saved tensors no hook sees (the output head, say).
struct Exclude {
  bool begin = true;
  bool operator==(const Exclude&) const = default;
};

// How what a call saves is kept: as hooks say, or not at all and recomputed in backward, as
// torch.utils.checkpoint does with use_reentrant=False (kCheckpoint) or True (kReentrant), or by
// running those of its ops again that made it (kReplay: the call is a span).
enum class Recompute : std::uint8_t { kNone, kCheckpoint, kReentrant, kReplay };

// Runs another code in a frame of its own: `in` to its arguments, its results to `out`. Grad mode
// is on in it, in a body as well (as under torch.enable_grad: a reentrant checkpoint's recompute).
// A span has none of the options.
struct Call {
  CodeId code = 0;
  std::vector<Slot> in;
  std::vector<Slot> out;
  // The options are torch.utils.checkpoint's, with its defaults; kNone ignores them. A reentrant
  // call has neither an early stop nor a determinism check.
  Recompute recompute = Recompute::kNone;
  bool early_stop = true;         // the recompute ends at the last tensor that is needed
  bool preserve_rng = true;       // the recompute draws forward's random numbers
  bool determinism_check = true;  // the recompute's saves are compared with forward's
  // The last so many of `in` are no arguments but captured by the function of a kCheckpoint: they
  // are not saved, and a recompute reads them as they are then.
  std::uint32_t captured = 0;
  bool operator==(const Call&) const = default;
};

// True if the call is a segment: its function runs again.
inline bool is_segment(const Call& call) {
  return call.recompute == Recompute::kCheckpoint || call.recompute == Recompute::kReentrant;
}

// One graph task from `roots`. Inside a body it is a nested backward. Without `inputs` gradients
// accumulate in the globals, as Tensor.backward does; with them they go to `out`, one for each, and
// to no global, as torch.autograd.grad does.
struct Backward {
  std::vector<Slot> roots;
  std::vector<Slot> inputs;
  std::vector<Slot> out;
  bool retain_graph = false;
  bool create_graph = false;
  bool operator==(const Backward&) const = default;
};

// The stream that the following statements compute on; stream 0 is the default stream.
struct SetStream {
  std::uint32_t stream = 0;
  bool operator==(const SetStream&) const = default;
};

// Stream `to` waits for the work that `from` was given so far.
struct Sync {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool operator==(const Sync&) const = default;
};

// PyTorch's record_stream: the slot's storage is in use on `stream`.
struct RecordUse {
  Slot slot = kNoSlot;
  std::uint32_t stream = 0;
  bool operator==(const RecordUse&) const = default;
};

// User code fails here. Where a backward runs it, that backward fails; the program goes on after
// the outermost Call or Backward of its main code.
struct Raise {
  std::string message;
  bool operator==(const Raise&) const = default;
};

// A global gets another storage with the same value (module.to(), a sharded parameter).
struct Move {
  Slot global = kNoSlot;
  bool operator==(const Move&) const = default;
};

// Ambient state, such as autocast's: the values of the ops that follow depend on it, until it is
// set again, across calls. A checkpoint captures it in forward and puts it back for the recompute.
struct Ambient {
  std::uint32_t state = 0;
  bool operator==(const Ambient&) const = default;
};

// The next `count` statements run only while a checkpoint runs this code again (`recomputing`), or
// only while none does: for programs whose recompute differs from their forward. What a recompute
// calls runs again, too. The regions of Module and Exclude are inside or outside as a whole, and
// there is no When under another.
struct When {
  bool recomputing = false;
  std::uint32_t count = 0;
  bool operator==(const When&) const = default;
};

using Action = std::variant<Op, View, MakeNode, Save, Free, Module, Exclude, Call, Backward,
                            SetStream, Sync, RecordUse, Raise, Move, Ambient, When>;

struct Statement {
  Action action;
  std::uint32_t line = 0;  // its line in the file; 0 if it has none
};

enum class CodeKind : std::uint8_t { kMain, kSegment, kBody };

// A body is what a node runs in backward: `arguments` are the gradients of the node's outputs,
// `saved` the unpacked saved tensors in order, `results` the gradients of the node's inputs
// (kNoSlot: none). A segment is called: `arguments` and `results` match the Call's.
struct Code {
  CodeKind kind = CodeKind::kSegment;
  std::string name;
  std::vector<Slot> arguments;
  std::vector<Slot> saved;
  std::vector<Slot> results;
  std::vector<Statement> statements;
  std::uint32_t line = 0;
};

enum class GlobalKind : std::uint8_t { kParameter, kBuffer, kInput };

// If `alias` names an earlier global, the two share a storage (tied weights).
struct Global {
  GlobalKind kind = GlobalKind::kParameter;
  std::string name;
  TypeId type = 0;
  bool requires_grad = false;
  Slot alias = kNoSlot;
  std::uint32_t line = 0;
};

struct Program {
  std::string name;
  std::vector<std::pair<std::string, std::string>> about;  // model, batch, versions: for people
  std::vector<Layout> types;
  std::vector<Global> globals;
  std::vector<Code> codes;
  CodeId main = 0;
};

}  // namespace ferry
