#include "plan/span_model.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <variant>

#include "formats/modules.h"
#include "formats/spans.h"
#include "plan/span_groups.h"

namespace ferry::plan {
namespace {

bool is_op_or_call(const Statement& statement) {
  return std::holds_alternative<Op>(statement.action) ||
         std::holds_alternative<Call>(statement.action);
}

bool is_given_or_call(const Statement& statement) {
  const auto* op = std::get_if<Op>(&statement.action);
  return std::holds_alternative<Call>(statement.action) || (op && op->name == kGivenOp);
}

// True if the first kernels of the step are those of the forward's operators.
bool begins_with_operators(const Program& program) {
  const std::vector<Statement>& main = program.codes[program.main].statements;
  const auto first = std::find_if(main.begin(), main.end(), is_op_or_call);
  if (first == main.end() || !std::holds_alternative<Call>(first->action)) return false;
  const Call& call = std::get<Call>(first->action);
  if (call.recompute != Recompute::kNone) return false;
  const std::vector<Statement>& forward = program.codes[call.code].statements;
  return std::none_of(forward.begin(), forward.end(), is_given_or_call);
}

std::size_t saves_of(const Action& action) {
  if (const auto* node = std::get_if<MakeNode>(&action)) return node->saved.size();
  const auto* save = std::get_if<Save>(&action);
  return save ? save->slots.size() : 0;
}

class Modelling {
 public:
  Modelling(const Program& program, const KeepTrace& trace,
            const std::vector<OperatorRange>& ranges)
      : trace_(trace),
        ranges_(ranges),
        groups_(span_groups(program, ranges)),
        statements_(program.codes[*spanned_code(program)].statements),
        numbers_(trace.storages.size(), kNone) {}

  SpanModel model() {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      model_.operators.push_back({.ns = trace_.kernels[i].ns,
                                  .again = runs_again(i),
                                  .joins_next = ranges_[i].joins_next});
    }
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) add_storage(s);
    for (ModelOperator& op : model_.operators) {
      for (const std::uint32_t s : op.reads) op.again &= !model_.storages[s].written;
    }
    add_packs();
    for (const ModelStorage& storage : model_.storages) {
      if (storage.saved) model_.operators[storage.maker].saved_bytes += storage.bytes;
    }
    add_memory();
    merge();
    return std::move(model_);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // the storage is not in the model

  // True if the operator may be recomputed. A replay whose input was written since is an error.
  bool runs_again(std::size_t op) const {
    return !groups_.writes_outside[op] && !groups_.reads_written[op] &&
           !std::get<Op>(statements_[ranges_[op].op].action).once;
  }

  void add_storage(std::size_t number) {
    const TracedStorage& traced = trace_.storages[number];
    if (traced.maker >= ranges_.size()) return;
    const auto here = static_cast<std::uint32_t>(model_.storages.size());
    numbers_[number] = here;
    ModelStorage storage{.bytes = traced.block_bytes,
                         .maker = traced.maker,
                         .last = traced.maker,
                         .written = groups_.lost[traced.maker]};
    for (const StorageUse& use : traced.uses) {
      if (use.kernel >= ranges_.size() || use.kernel == traced.maker) continue;
      ModelOperator& reader = model_.operators[use.kernel];
      storage.last = std::max(storage.last, use.kernel);
      if (reader.reads.empty() || reader.reads.back() != here) reader.reads.push_back(here);
    }
    model_.operators[traced.maker].makes.push_back(here);
    model_.storages.push_back(storage);
  }

  // Assigns each saved tensor to an operator. A save between two operators belongs to the later one
  // if it comes after that one's first statement.
  void add_packs() {
    const std::size_t all = ranges_.size();
    std::size_t pack = 0;
    for (std::size_t gap = 0; gap <= all; ++gap) {
      const std::size_t from = gap == 0 ? 0 : ranges_[gap - 1].op + 1;
      const std::size_t to = gap == all ? statements_.size() : ranges_[gap].op;
      const std::size_t begin = gap == all ? to : ranges_[gap].begin;
      std::size_t earlier = 0, later = 0;
      for (std::size_t i = from; i < to; ++i) {
        (i < begin ? earlier : later) += saves_of(statements_[i].action);
      }
      const std::size_t first = pack;
      while (pack < trace_.packs.size() && trace_.packs[pack].kernels <= gap) ++pack;
      if (pack - first != earlier + later) {
        // A node was not made, or hooks do not see it. It is not known which save is whose.
        if (gap > 0) model_.operators[gap - 1].joins_next = false;
        if (gap > 0) model_.operators[gap - 1].again = false;
        if (gap < all) model_.operators[gap].again = false;
        earlier = gap > 0 ? pack - first : 0;
      }
      for (std::size_t p = first; p < pack; ++p) {
        save(p, p - first < earlier ? gap - 1 : std::min(gap, all - 1));
      }
    }
  }

  void save(std::size_t pack, std::size_t by) {
    const std::uint32_t traced = trace_.packs[pack].storage;
    if (traced == TracedStorage::kNobody || numbers_[traced] == kNone) return;
    ModelStorage& storage = model_.storages[numbers_[traced]];
    storage.saved = true;
    storage.last = std::max(storage.last, static_cast<std::uint32_t>(by));
    model_.operators[by].saves.push_back(numbers_[traced]);
  }

  // Returns the number of kernels of the first forward and its backward: up to the next forward.
  // The main code itself may run kernels between the two.
  std::size_t kernels() const {
    const std::size_t all = trace_.kernels.size();
    std::size_t end = ranges_.size();
    while (end < all && trace_.kernels[end].forward) ++end;
    while (end < all && !trace_.kernels[end].forward) ++end;
    return end;
  }

  void add_memory() {
    const std::size_t end = kernels(), all = ranges_.size();
    std::vector<std::int64_t> used(end + 1, 0), beside(end + 1, 0), fresh(end, 0);
    std::vector<std::uint32_t> place(end, 0);
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      const TracedStorage& storage = trace_.storages[s];
      if (storage.maker >= end) continue;
      const std::size_t until = std::min<std::size_t>(storage.freed, end);
      const bool saved = numbers_[s] != kNone && model_.storages[numbers_[s]].saved;
      if (!saved) fresh[storage.maker] += storage.block_bytes;
      for (auto* bytes : {&used, &beside}) {
        if (saved && bytes == &beside) continue;
        (*bytes)[storage.maker] += storage.block_bytes;
        (*bytes)[until] -= storage.block_bytes;
      }
      for (std::size_t k = std::max<std::size_t>(all, storage.maker); saved && k < until; ++k) {
        place[k] = std::max(place[k], storage.maker);
      }
    }
    std::partial_sum(used.begin(), used.end(), used.begin());
    std::partial_sum(beside.begin(), beside.end(), beside.begin());
    for (std::size_t k = 0; k < end; ++k) {
      std::int64_t& here = model_.operators[k < all ? k : place[k]].beside;
      here = std::max(here, beside[k] + trace_.held_bytes);
      model_.peak_bytes = std::max(model_.peak_bytes, used[k] + trace_.held_bytes);
    }
    model_.least_bytes = trace_.held_bytes;
    std::vector<bool> reached(all, false);
    for (std::size_t k = all; k < end; ++k) {
      if (reached[place[k]]) continue;
      reached[place[k]] = true;
      model_.operators[place[k]].carried = beside[k] - fresh[k] + trace_.held_bytes;
    }
    // An operator at which backward never arrives takes the value of the next one.
    for (std::size_t i = all; i-- > 0;) {
      if (reached[i]) continue;
      model_.operators[i].carried =
          i + 1 < all ? model_.operators[i + 1].carried : trace_.held_bytes;
    }
  }

  // Merges the operators of each group into one.
  void merge() {
    std::vector<ModelOperator> merged;
    for (std::size_t i = 0; i < model_.operators.size(); ++i) {
      ModelOperator& op = model_.operators[i];
      const std::uint32_t here = groups_.group[i];
      std::erase_if(op.reads, [&](std::uint32_t s) {
        return groups_.group[model_.storages[s].maker] == here;
      });
      if (here == merged.size()) {
        merged.push_back(std::move(op));
        continue;
      }
      ModelOperator& whole = merged.back();
      whole.ns += op.ns;
      ++whole.count;
      whole.beside = std::max(whole.beside, op.beside);
      whole.carried = op.carried;
      whole.again &= op.again;
      whole.joins_next = op.joins_next;
      for (const auto list :
           {&ModelOperator::makes, &ModelOperator::reads, &ModelOperator::saves}) {
        (whole.*list).insert((whole.*list).end(), (op.*list).begin(), (op.*list).end());
      }
      whole.saved_bytes += op.saved_bytes;
    }
    for (ModelStorage& storage : model_.storages) {
      storage.maker = groups_.group[storage.maker];
      storage.last = groups_.group[storage.last];
    }
    model_.operators = std::move(merged);
  }

  const KeepTrace& trace_;
  const std::vector<OperatorRange>& ranges_;
  const SpanGroups groups_;
  const std::vector<Statement>& statements_;
  SpanModel model_;
  std::vector<std::uint32_t> numbers_;  // index in the model, by storage of the trace
};

}  // namespace

bool has_operators(const Program& program) {
  return !marks_calls(program) && begins_with_operators(program) &&
         !operator_ranges(program).empty();
}

SpanModel span_model(const Program& program, const KeepTrace& trace) {
  if (trace.fails || !has_operators(program)) return {};
  const std::vector<OperatorRange> ranges = operator_ranges(program);
  if (ranges.empty() || ranges.size() > trace.kernels.size()) return {};
  return Modelling(program, trace, ranges).model();
}

}  // namespace ferry::plan
