#include "verify/oracles/saved_sources.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ferry::verify {

Refused::Refused(std::uint64_t now, std::uint64_t saved)
    : std::runtime_error(
          "one of the variables needed for gradient computation has been modified by an inplace "
          "operation: it is at version " +
          std::to_string(now) + "; expected version " + std::to_string(saved) + " instead") {}

std::int64_t SegmentModel::need(GraphTaskId task) {
  if (task != GraphTaskId::kNone && ran_.contains(task)) return 0;
  std::int64_t calls = 0;
  for (const SourceRef& input : inputs_) calls += input->need(task);
  ran_.insert(task);
  return calls;
}

// Lives as long as autograd may need the tensor.
class SpanModel::MadeSource final : public Source {
 public:
  MadeSource(std::shared_ptr<SpanModel> span, std::size_t ordinal)
      : span_(std::move(span)), ordinal_(ordinal) {}
  MadeSource(const MadeSource&) = delete;
  MadeSource& operator=(const MadeSource&) = delete;
  ~MadeSource() override { span_->forget(ordinal_); }
  std::int64_t need(GraphTaskId task) override { return span_->need(ordinal_, task); }

 private:
  const std::shared_ptr<SpanModel> span_;
  const std::size_t ordinal_;
};

void SpanModel::ran(const sim::RanOp& op, StreamId stream, GraphTaskId task) {
  bool again = op.run && stream == stream_ && task == task_;
  for (const auto& input : op.inputs) again &= !input.written || is_made(input.tensor);
  Call call;
  for (const auto& input : op.inputs) {
    const StorageId storage = input.tensor->storage->identity;
    if (input.written && !again) made_.erase(storage);
    if (input.written) call.changes.push_back(storage);
    if (is_made(input.tensor)) {
      call.reads.push_back(storage);
    } else if (again) {
      call.outside.push_back(
          {SeenVersion(input.tensor), std::make_shared<KeptSource>(input.tensor), input.tensor});
    }
  }
  if (!again) return;
  for (const sim::Tensor& output : op.outputs) {
    call.changes.push_back(output->storage->identity);
    made_.insert(output->storage->identity);
  }
  if (call.changes.empty()) return;
  calls_.push_back(std::move(call));
  ++counts_.calls;
}

SourceRef SpanModel::pack(const sim::Tensor& tensor) {
  ++(is_made(tensor) ? counts_.saved : counts_.passed_on);
  if (!is_made(tensor)) return nullptr;
  packs_.push_back({tensor->storage->identity, calls_.size(), SeenVersion(tensor)});
  return std::make_shared<MadeSource>(shared_from_this(), packs_.size() - 1);
}

void SpanModel::end(const Saver& save) {
  std::vector<std::size_t> all, alive;
  for (std::size_t i = 0; i < packs_.size(); ++i) {
    all.push_back(i);
    if (packs_[i].alive) alive.push_back(i);
  }
  for (const std::size_t number : needed(all)) {
    counts_.held += static_cast<std::int64_t>(calls_[number].outside.size());
    for (Call::Outside& each : calls_[number].outside) {
      if (!each.version.is_written()) each.source = save(each.tensor);
    }
  }
  const std::set<std::size_t> kept = needed(alive);
  counts_.calls_left += static_cast<std::int64_t>(kept.size());
  ended_ = true;
  made_.clear();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    for (Call::Outside& each : calls_[i].outside) each.tensor = nullptr;
    if (!kept.contains(i)) calls_[i].outside.clear();
  }
}

// Called when autograd no longer needs the tensor.
void SpanModel::forget(std::size_t ordinal) {
  packs_[ordinal].alive = false;
  const auto alive = [](const Pack& pack) { return pack.alive; };
  if (!ended_ || std::any_of(packs_.begin(), packs_.end(), alive)) return;
  for (Call& call : calls_) call.outside.clear();
}

std::int64_t SpanModel::need(std::size_t ordinal, GraphTaskId task) {
  packs_[ordinal].version.refuse_if_written();
  const auto run = runs_.find(task);
  if (task == GraphTaskId::kNone || run != runs_.end()) {
    if (run != runs_.end() && run->second.erase(ordinal) > 0) return 0;
    return replay({ordinal}, task);
  }
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < packs_.size(); ++i) {
    if (packs_[i].alive) alive.push_back(i);
  }
  const std::int64_t calls = replay(alive, task);
  std::set<std::size_t>& ready = runs_[task];
  ready.insert(alive.begin(), alive.end());
  ready.erase(ordinal);
  return calls;
}

std::int64_t SpanModel::replay(const std::vector<std::size_t>& ordinals, GraphTaskId task) {
  std::int64_t calls = 0;
  ++counts_.replays;
  for (const std::size_t number : needed(ordinals)) {
    ++calls;
    for (const Call::Outside& each : calls_[number].outside) calls += each.source->need(task);
  }
  return calls;
}

// Finds every call that changed one of these storages before its pack, and the calls for what those
// read.
std::set<std::size_t> SpanModel::needed(const std::vector<std::size_t>& ordinals) const {
  std::set<std::size_t> needed;
  const std::function<void(StorageId, std::size_t)> need = [&](StorageId storage,
                                                               std::size_t before) {
    for (std::size_t i = before; i-- > 0;) {
      const Call& call = calls_[i];
      if (std::find(call.changes.begin(), call.changes.end(), storage) == call.changes.end()) {
        continue;
      }
      if (!needed.insert(i).second) continue;
      for (const StorageId read : call.reads) need(read, i);
    }
  };
  for (const std::size_t each : ordinals) need(packs_[each].storage, packs_[each].calls);
  return needed;
}

}  // namespace ferry::verify
