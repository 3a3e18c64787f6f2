#include "real/log/op_log.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/op_costs.h"
#include "real/api/known_op.h"
#include "real/autograd/below_autograd.h"
#include "real/capture/op_call.h"
#include "real/tensors/torch_tensors.h"

namespace ferry::real {
namespace {

using Destination = OpLog::Destination;

std::atomic<const Destination*> active = nullptr;

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// In-place ops that write no byte.
constexpr std::array<std::string_view, 11> kMetadataOnly = {
    "aten.set_",      "aten.resize_",  "aten.resize_as_", "aten.as_strided_",
    "aten.t_",        "aten.squeeze_", "aten.unsqueeze_", "aten.transpose_",
    "aten.swapaxes_", "aten.detach_",  "aten.swapdims_"};
// Ops whose results are not tensors but are computed from a tensor's bytes.
constexpr std::array<std::string_view, 3> kReadsBack = {"aten._local_scalar_dense", "aten.equal",
                                                        "aten.is_nonzero"};

// One call of an op.
class LoggedCall {
 public:
  LoggedCall(const Destination& to, const c10::OperatorHandle& op, const torch::jit::Stack& stack)
      : to_(to), op_(op), name_(label(op)) {
    capture::each_argument(op, stack, [&](const at::Tensor& tensor, bool writes) {
      if (seen(tensor)) arguments_.push_back({tensor, tensor.storage(), range(tensor), writes});
    });
  }

  void done(const torch::jit::Stack& stack) {
    if (among(kMetadataOnly, name_)) return;
    bool on_device = !arguments_.empty();
    bool tensors = false;
    const std::size_t returns = op_.schema().returns().size();
    for (std::size_t i = stack.size() - returns; i < stack.size(); ++i) {
      capture::each_tensor(stack[i], [&](const at::Tensor& tensor) {
        tensors = true;
        if (!seen(tensor)) return;
        on_device = true;
        if (is_new(tensor) && !writes_nothing(name_)) add(writes_, range(tensor));
      });
    }
    for (const Argument& argument : arguments_) {
      if (argument.writes) {
        add(writes_, range(argument.tensor));
      } else if (!reads_shapes_only(name_) && !moved(argument)) {
        add(reads_, argument.range);
      }
    }
    const bool reads_back = !tensors && among(kReadsBack, name_);
    if (on_device && (!writes_.empty() || reads_back)) write(reads_back);
  }

 private:
  struct Argument {
    at::Tensor tensor;  // held, because it may be the last reference
    c10::Storage storage;
    Range range;
    bool writes = false;
  };

  bool seen(const at::Tensor& tensor) const {
    return tensor.device().type() == to_.device.type() && TorchTensors::plain(tensor);
  }
  static Range range(const at::Tensor& tensor) {
    const Extent extent = TorchTensors::extent(TorchTensors::layout(tensor));
    return {TorchTensors::address(tensor.storage()) + static_cast<std::uint64_t>(extent.begin),
            static_cast<std::uint64_t>(extent.bytes())};
  }
  static void add(std::vector<Range>& ranges, Range range) {
    if (range.bytes == 0 || std::find(ranges.begin(), ranges.end(), range) != ranges.end()) return;
    ranges.push_back(range);
  }
  bool is_new(const at::Tensor& tensor) const {
    return std::none_of(arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
      return argument.storage.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
    });
  }
  // True if the op gave the argument's storage other memory.
  static bool moved(const Argument& argument) {
    const std::uint64_t begin = TorchTensors::address(argument.storage);
    const auto bytes = static_cast<std::uint64_t>(TorchTensors::bytes(argument.storage));
    return argument.range.address < begin || argument.range.end() > begin + bytes;
  }

  void write(bool reads_back) {
    const c10::Stream stream =
        to_.device.is_cpu() ? c10::Stream(c10::Stream::DEFAULT, to_.device)
                            : c10::impl::VirtualGuardImpl(to_.device.type()).getStream(to_.device);
    StreamOp op;
    op.stream = to_.log->stream(stream_key(stream));
    op.name = name_;
    std::erase_if(reads_, [&](const Range& read) {
      return std::find(writes_.begin(), writes_.end(), read) != writes_.end();
    });
    op.reads = reads_;
    op.writes = writes_;
    to_.log->write(op);
    if (!reads_back || to_.device.is_cpu()) return;
    StreamOp wait;
    wait.kind = StreamOpKind::kStreamSync;
    wait.stream = op.stream;
    to_.log->write(wait);
  }

  const Destination& to_;
  const c10::OperatorHandle& op_;
  const std::string name_;
  std::vector<Argument> arguments_;
  std::vector<Range> reads_, writes_;
};

void run_logged(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Destination* const to = active;
  if (!to) return run_below(op, keys, stack);
  LoggedCall call(*to, op, *stack);
  run_below(op, keys, stack);
  call.done(*stack);
}

}  // namespace

OpLog::OpLog(std::shared_ptr<StreamLog> log, c10::Device device)
    : destination_{std::move(log), device}, key_(kBelowAutograd) {
  active = &destination_;
  observe_below_autograd(&run_logged);
}

OpLog::~OpLog() {
  observe_below_autograd(nullptr);
  active = nullptr;
}

}  // namespace ferry::real
