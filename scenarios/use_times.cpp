// Implements the half of scenarios/kernel_times.h that gives a program its times.
#include <algorithm>
#include <optional>

#include "formats/file_kind.h"
#include "formats/limits.h"
#include "formats/profile.h"
#include "formats/text_file.h"
#include "scenarios/kernel_times.h"
#include "scenarios/roofline.h"

namespace ferry {
namespace {

__extension__ typedef __int128 Wide;

// The dtype that the simulator uses for an op (sim/program/prepared.cpp).
DType dtype_of(const OpSignature& op) {
  return op.out.empty() ? DType::kF32 : op.out.front().dtype;
}

// The roofline's time for an op of these costs, whatever was measured.
std::int64_t work_ns(const OpSignature& signature, const Hardware& hardware) {
  Op op;
  op.flops = signature.flops;
  op.read_bytes = signature.read_bytes;
  op.written_bytes = signature.written_bytes;
  return kernel_ns(op, dtype_of(signature), hardware);
}

struct MeasuredCall {
  std::int64_t work_ns = 0;
  std::int64_t ns = 0;
};

class Lookup {
 public:
  Lookup(const std::vector<TimesTable>& tables, const Hardware& hardware)
      : tables_(tables), hardware_(hardware) {
    for (const TimesTable& table : tables) {
      for (const auto& [text, time] : table.times) {
        calls_[{time.op.name, dtype_of(time.op)}].push_back({work_ns(time.op, hardware), time.ns});
      }
    }
  }

  std::optional<std::int64_t> exact(const OpSignature& op) const {
    const std::string text = signature_text(op);
    for (const TimesTable& table : tables_) {
      if (const auto found = table.times.find(text); found != table.times.end()) {
        return found->second.ns;
      }
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> scaled(const OpSignature& op) const {
    const auto calls = calls_.find({op.name, dtype_of(op)});
    if (calls == calls_.end()) return std::nullopt;
    const Wide work = work_ns(op, hardware_);
    // Nearest by ratio: the distance of two times is the larger one divided by the smaller one.
    const auto nearer = [work](const MeasuredCall& a, const MeasuredCall& b) {
      const auto far = [work](const MeasuredCall& to) {
        return std::pair(std::max(work, Wide{to.work_ns}), std::min(work, Wide{to.work_ns}));
      };
      const auto [a_more, a_less] = far(a);
      const auto [b_more, b_less] = far(b);
      return a_more * b_less < b_more * a_less;
    };
    const MeasuredCall& known =
        *std::min_element(calls->second.begin(), calls->second.end(), nearer);
    const Wide ns = (known.ns * work + known.work_ns - 1) / known.work_ns;
    return static_cast<std::int64_t>(std::clamp<Wide>(ns, 1, limits::kTimeNs));
  }

 private:
  const std::vector<TimesTable>& tables_;
  const Hardware& hardware_;
  std::map<std::pair<std::string, DType>, std::vector<MeasuredCall>> calls_;
};

}  // namespace

void MeasuredTimes::read(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  refuse_other_kinds(text, path.string(), {FileKind::kKernelTimes, FileKind::kProfile});
  if (is_profile(text, path.string())) {
    profiled.add(parse_profile(text, path.string()));
  } else {
    tables.push_back(parse_times(text, path.string()));
  }
}

TimesUsed use_times(const MeasuredTimes& measured, const Hardware& hardware, Program& program) {
  const Lookup lookup(measured.tables, hardware);
  TimesUsed used;
  each_op(program, [&](Op& op, const OpSignature& signature) {
    ++used.all;
    auto ns = lookup.exact(signature);
    if (!ns) ns = measured.profiled.find(signature);
    if (ns) {
      op.measured_ns = *ns;
      ++used.measured;
    } else if (const auto like = lookup.scaled(signature)) {
      op.measured_ns = *like;
      ++used.scaled;
    }
  });
  return used;
}

}  // namespace ferry
