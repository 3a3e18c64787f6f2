// Random models under random options: a captured step decides on the simulated device what it
// decides on the CPU.
//
// A model is a list of instructions over a growing list of values, each 8 by 8; values that are
// dropped, used often, written in place, viewed, saved by several nodes, or never used by the loss.
// Some instructions are checkpoints.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "formats/program_file.h"
#include "plan/planner.h"
#include "tests/real/capture/step.h"

namespace ferry::real::capture {
namespace {

constexpr std::int64_t kSize = 8;

enum class Kind : std::uint8_t {
  kMatmul,
  kAdd,
  kMul,
  kSin,
  kExp,
  kTanh,
  kSoftmax,
  kDropout,
  kNorm,
  kWritten,
  kWrittenView,
  kSlices,
  kTurned,
  kUnhooked,
  kConstant,
  kDrop,
  kKinds
};

// Whether it runs in a checkpoint, and what that is handed.
enum class Handed : std::uint8_t { kPlain, kBoth, kTurnedRound, kOne, kNeither, kMore, kCalls };

struct Instruction {
  Kind kind = Kind::kMatmul;
  std::size_t a = 0;  // of the values there are, modulo
  std::size_t b = 0;
  Handed handed = Handed::kPlain;
};

enum class End : std::uint8_t { kBackward, kTwice, kRetained, kNone };

struct Case {
  std::vector<Instruction> instructions;
  CoreOptions options;
  End end = End::kBackward;

  bool checkpoints() const {
    return std::any_of(instructions.begin(), instructions.end(),
                       [](const auto& each) { return each.handed != Handed::kPlain; });
  }
};

std::ostream& operator<<(std::ostream& out, const Case& tested) {
  out << "end " << static_cast<int>(tested.end) << ":";
  for (const Instruction& each : tested.instructions) {
    out << " " << static_cast<int>(each.kind) << "(" << each.a << "," << each.b << ")"
        << static_cast<int>(each.handed);
  }
  const CoreOptions& o = tested.options;
  return out << "; bytes_min " << o.min_bytes << ", packs " << o.window_tensors << ", window "
             << o.window_bytes << ", prefetch " << o.prefetch_bytes << ", hold " << o.hold_bytes
             << ", pool " << static_cast<int>(o.reload_pool) << ", streams "
             << static_cast<int>(o.copy_streams);
}

// Uniform at every size; shrinks towards 0.
rc::Gen<std::size_t> below(std::size_t count) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return rc::gen::shrink(rc::gen::elementOf(std::move(all)), [](std::size_t value) {
    return rc::shrink::towards(value, std::size_t{0});
  });
}

rc::Gen<Instruction> instruction() {
  return rc::gen::build<Instruction>(
      rc::gen::set(&Instruction::kind,
                   rc::gen::map(below(static_cast<std::size_t>(Kind::kKinds)),
                                [](std::size_t kind) { return static_cast<Kind>(kind); })),
      rc::gen::set(&Instruction::a, below(6)), rc::gen::set(&Instruction::b, below(6)),
      rc::gen::set(&Instruction::handed,
                   rc::gen::map(below(static_cast<std::size_t>(Handed::kCalls)),
                                [](std::size_t handed) { return static_cast<Handed>(handed); })));
}

template <class T>
rc::Gen<T> one_of(std::vector<T> values) {
  return rc::gen::elementOf(std::move(values));
}

rc::Gen<CoreOptions> options() {
  return rc::gen::build<CoreOptions>(
      rc::gen::set(&CoreOptions::min_bytes, one_of<std::int64_t>({0, 200})),
      rc::gen::set(&CoreOptions::window_tensors, one_of<std::int64_t>({1, 2, 5, kUnlimited})),
      rc::gen::set(&CoreOptions::window_bytes, one_of<std::int64_t>({0, 512, kUnlimited})),
      rc::gen::set(&CoreOptions::prefetch_bytes, one_of<std::int64_t>({0, 300, 1024, kUnlimited})),
      rc::gen::set(&CoreOptions::hold_bytes, one_of<std::int64_t>({0, 300, kUnlimited})),
      rc::gen::set(&CoreOptions::reload_pool,
                   one_of<ReloadPool>({ReloadPool::kConsumer, ReloadPool::kCopyStream})),
      rc::gen::set(&CoreOptions::copy_streams,
                   one_of<CopyStreams>({CopyStreams::kTwo, CopyStreams::kOne})));
}

rc::Gen<Case> cases() {
  return rc::gen::build<Case>(
      rc::gen::set(
          &Case::instructions,
          rc::gen::scale(0.4, rc::gen::container<std::vector<Instruction>>(instruction()))),
      rc::gen::set(&Case::options, options()),
      rc::gen::set(&Case::end,
                   one_of<End>({End::kBackward, End::kTwice, End::kRetained, End::kNone})));
}

torch::Tensor value(Kind kind, const torch::Tensor& a, const torch::Tensor& b,
                    const torch::Tensor& weight) {
  switch (kind) {
    case Kind::kMatmul:
      return a.mm(weight);
    case Kind::kAdd:
      return a + b;
    case Kind::kMul:
      return a * b;
    case Kind::kSin:
      return a.sin();
    case Kind::kExp:
      return torch::tanh(a).exp();
    case Kind::kTanh:
      return a.tanh();
    case Kind::kSoftmax:
      return a.softmax(1);
    case Kind::kDropout:
      return torch::dropout(a, 0.3, /*train=*/true);
    case Kind::kNorm:
      return torch::layer_norm(a, {kSize}, weight.select(0, 0));
    case Kind::kWritten:
      return (a + b).relu_();
    case Kind::kWrittenView: {
      auto c = a + 0;
      c.narrow(1, 2, 3).mul_(2.0).sigmoid_();
      return c;
    }
    case Kind::kSlices:
      return torch::cat({a.narrow(0, 0, 3).sin(), b.narrow(0, 3, 5) * a.narrow(0, 3, 5)});
    case Kind::kTurned:
      return (a.t() * b.view({kSize / 2, -1}).view({kSize, kSize})).contiguous();
    case Kind::kUnhooked: {
      const NoOffloadGuard alone;
      return a.cos() * b;
    }
    case Kind::kConstant:
      return a.detach() * b + torch::ones({kSize, kSize});
    case Kind::kDrop:
    case Kind::kKinds:
      break;
  }
  return a;
}

bool reads_b(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
    case Kind::kMul:
    case Kind::kWritten:
    case Kind::kSlices:
    case Kind::kTurned:
    case Kind::kUnhooked:
    case Kind::kConstant:
      return true;
    default:
      return false;
  }
}

// What the function reads and is not handed it captures. It captures nothing else: a capture does
// not see what a function holds.
torch::Tensor call(const Instruction& each, const torch::Tensor& a, const torch::Tensor& b,
                   const torch::Tensor& weight, const torch::Tensor& x) {
  const auto run = [kind = each.kind, weight](const torch::Tensor& a, const torch::Tensor& b) {
    return value(kind, a, b, weight);
  };
  using torch::Tensor;
  switch (each.handed) {
    case Handed::kBoth:
      return checkpoint(run, a, b);
    case Handed::kTurnedRound:
      return checkpoint([run](const Tensor& b, const Tensor& a) { return run(a, b); }, b, a);
    case Handed::kOne:
      if (!reads_b(each.kind) || a.is_same(b)) {
        return checkpoint([run](const Tensor& a) { return run(a, a); }, a);
      }
      return checkpoint([run, b](const Tensor& a) { return run(a, b); }, a);
    case Handed::kNeither:
      if (each.kind == Kind::kConstant) return checkpoint(run, a, b);  // it does not read a's node
      if (!reads_b(each.kind)) return checkpoint([run, a] { return run(a, a); });
      return checkpoint([run, a, b] { return run(a, b); });
    case Handed::kMore:
      return checkpoint([run](const Tensor& x, const Tensor& a, const Tensor& b, const Tensor&,
                              const Tensor&) { return run(a, b) + x; },
                        x, a, b, a, weight);
    default:
      return run(a, b);
  }
}

void run(const Case& tested, const torch::Tensor& x, const torch::Tensor& weight) {
  std::vector<torch::Tensor> values{x.mm(weight)};
  for (const Instruction& each : tested.instructions) {
    const std::size_t a = values.size() - 1 - each.a % values.size();
    const std::size_t b = values.size() - 1 - each.b % values.size();
    if (each.kind != Kind::kDrop) {
      values.push_back(call(each, values[a], values[b], weight, x));
    } else if (values.size() > 1) {
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(a));
    }
  }
  auto loss = (values.back() * weight).sum();
  if (values.size() > 3) loss = loss + values[values.size() / 2].sum();
  if (tested.end == End::kNone) return;
  loss.backward({}, tested.end != End::kBackward);
  if (tested.end == End::kTwice) loss.backward();
}

// A checkpoint holds its arguments' nodes and what its function captured; in a capture it just ran.
// So where parts of a graph with checkpoints die outside a backward, they die in another order.
std::vector<Decision> with_sorted_returns(std::vector<Decision> decisions) {
  const auto is_return = [](const Decision& each) {
    return each.kind == DecisionKind::kReturn || each.kind == DecisionKind::kRelease;
  };
  for (auto at = decisions.begin(); at != decisions.end();) {
    const auto end = std::find_if_not(at, decisions.end(), is_return);
    std::stable_sort(at, end, [](auto& a, auto& b) { return a.pack < b.pack; });
    at = std::find_if(end, decisions.end(), is_return);
  }
  return decisions;
}

RC_GTEST_PROP(RandomStepProp, RealAndSimulatedDecisionsAreTheSame, ()) {
  const Case tested = *cases();
  struct Model : torch::nn::Module {
    torch::Tensor weight = register_parameter("weight", torch::randn({kSize, kSize}));
  };
  const auto model = std::make_shared<Model>();
  const auto x = torch::randn({kSize, kSize});
  const Step step{model, {{"x", x}}, [&] { run(tested, x, model->weight); }};
  const Program program = plan::with_segments(capture_of(step));
  auto real = run_real(step, tested.options);
  Simulated simulated = run_simulated(program, tested.options);
  if (tested.checkpoints()) {
    real = with_sorted_returns(std::move(real));
    simulated.decisions = with_sorted_returns(std::move(simulated.decisions));
  }
  const std::string wrong = difference(real, simulated);
  if (!wrong.empty()) RC_FAIL(wrong + to_text(program));
}

}  // namespace
}  // namespace ferry::real::capture
