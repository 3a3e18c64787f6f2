// A program: one training step as autograd sees it, written as code.
//
// Captured, random, hand-written and imported programs all have this type, and the tape in sim/
// executes it. formats/PROGRAM.md describes the file; formats/program_file.h reads and writes it.
//
// A program is a table of *globals* (parameters, buffers and inputs, which live for the whole run)
// and a list of *codes*. A code is straight-line statements over *slots*. Each run of a code has
// its own frame, so a segment can be recomputed with new storages. Slots below globals.size() are
// globals in every code. The other slots belong to the frame and are assigned once. A storage dies
// when the last slot, saved tensor or gradient that refers to it dies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ferry {

enum class DType : std::uint8_t { kF64, kF32, kBF16, kF16, kF8, kI64, kI32, kI16, kI8, kU8, kBool };

// A window on a storage. Shape and strides are in elements; the offset is in elements from the
// storage's start.
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

// The name of an op that stands for a tensor that existed before the step.
inline constexpr std::string_view kGivenOp = "ferry.given";

// A matrix product that an operator computes, or a convolution that is computed as one: `batch`
// products of m × k by k × n.
struct MatrixProduct {
  std::int64_t batch = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // The largest of 2, 4, 8 and 16 bytes to which every row of its three matrices is aligned in
  // memory. Kernels load 16 bytes at a time if they can.
  std::int64_t aligned_bytes = 16;
  bool operator==(const MatrixProduct&) const = default;
};

// Runs an operator. It makes the storages of its outputs, reads its inputs, and writes its outputs.
// It also writes the inputs in `writes` in place (positions in `in`); each such write increases the
// tensor's version.
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
  bool once = false;         // may have other effects, or other results next time: never replayed
  bool random = false;       // uses the random generator (dropout): its values depend on the
                             // generator's state, and it changes that state
  std::int64_t kernels = 1;  // number of GPU kernels, which run one after another
  std::vector<MatrixProduct> products{};  // the products that its FLOPs consist of
  std::int64_t cached_bytes = 0;  // bytes that it reads from the L2 cache (scenarios/l2.h); not in
                                  // the file
  bool operator==(const Op&) const = default;
};

// `out` is a window of type `type` on the storage of `of`. Costs nothing.
struct View {
  Slot out = kNoSlot;
  Slot of = kNoSlot;
  TypeId type = 0;
  bool operator==(const View&) const = default;
};

// Makes an autograd node if grad mode is on and some input requires grad. Its edges lead to where
// the gradients of `in` flow. The slots in `out` become its outputs (a slot may carry an edge and
// no tensor). `saved` are packed now, in order; a later Save packs more, such as outputs.
struct MakeNode {
  std::string name;
  std::uint32_t id = 0;  // unique in its frame
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

// A module boundary: entering or leaving. Modules nest. If the module is a call of checkpoint that
// was captured without a recompute, the entry has `arguments`: the tensor arguments of the call, in
// order, and the slots that carry their edges. If it is not `called`, it is a module that the
// library would call by checkpoint if the user asked for it, with these arguments.
struct Module {
  std::string name;
  bool enter = true;
  std::optional<std::vector<Slot>> arguments = std::nullopt;
  bool called = true;
  bool operator==(const Module&) const = default;
};

// The begin or end of a region whose saved tensors no hook sees (for example the output head).
struct Exclude {
  bool begin = true;
  bool operator==(const Exclude&) const = default;
};

// Decides what happens with the tensors that a call saves. kNone: the hooks decide. Otherwise they
// are not kept but recomputed in backward: as torch.utils.checkpoint does with use_reentrant=False
// (kCheckpoint) or True (kReentrant), or by running the ops again that made them (kReplay: the call
// is a span).
enum class Recompute : std::uint8_t { kNone, kCheckpoint, kReentrant, kReplay };

// Runs another code in its own frame. `in` are its arguments, and its results go to `out`. Grad
// mode is on in the code, even if a body calls it (as under torch.enable_grad in the recompute of a
// reentrant checkpoint). A span has none of the options.
struct Call {
  CodeId code = 0;
  std::vector<Slot> in;
  std::vector<Slot> out;
  // The options are torch.utils.checkpoint's, with its defaults; kNone ignores them. A reentrant
  // call has neither an early stop nor a determinism check.
  Recompute recompute = Recompute::kNone;
  bool early_stop = true;         // the recompute ends at the last tensor that is needed
  bool preserve_rng = true;       // the recompute uses the same random numbers as forward
  bool determinism_check = true;  // what the recompute saves is compared with forward
  // The last `captured` slots of `in` are not arguments but captured by the function of a
  // kCheckpoint: they are not saved, and a recompute reads them as they are then.
  std::uint32_t captured = 0;
  bool operator==(const Call&) const = default;
};

// True if the call is a segment: a recompute runs the whole function.
inline bool is_segment(const Call& call) {
  return call.recompute == Recompute::kCheckpoint || call.recompute == Recompute::kReentrant;
}

// Runs one graph task from `roots`. Inside a body it is a nested backward. Without `inputs`,
// gradients accumulate in the globals, as in Tensor.backward. With `inputs`, the gradient of each
// goes to `out` and to no global, as in torch.autograd.grad.
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

// Stream `to` waits for all earlier work of stream `from`.
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

// User code throws an exception here. If a backward runs this code, that backward fails. The
// program continues after the outermost Call or Backward of its main code.
struct Raise {
  std::string message;
  bool operator==(const Raise&) const = default;
};

// A global gets another storage with the same value (module.to(), a sharded parameter).
struct Move {
  Slot global = kNoSlot;
  bool operator==(const Move&) const = default;
};

// Sets ambient state, such as that of autocast. The values of the ops that follow depend on it,
// also across calls, until it is set again. A checkpoint captures it in forward and restores it for
// the recompute.
struct Ambient {
  std::uint32_t state = 0;
  bool operator==(const Ambient&) const = default;
};

// The next `count` statements run only while a checkpoint recomputes this code (`recomputing`), or
// only while none does. This is for programs whose recompute differs from their forward. Code that
// a recompute calls is recomputed too. A region of Module or Exclude must be completely inside or
// outside, and a When cannot contain another When.
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

// A code. A body is the code that a node runs in backward: `arguments` are the gradients of the
// node's outputs, `saved` the unpacked saved tensors in order, and `results` the gradients of the
// node's inputs (kNoSlot: none). A segment is called; its `arguments` and `results` match the Call.
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
  std::vector<std::pair<std::string, std::string>> about;  // model, batch, versions
  std::vector<Layout> types;
  std::vector<Global> globals;
  std::vector<Code> codes;
  CodeId main = 0;
};

}  // namespace ferry
