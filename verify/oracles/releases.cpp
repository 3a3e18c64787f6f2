#include "verify/oracles/releases.h"

#include <algorithm>
#include <utility>

namespace ferry::verify {
namespace {

Target::Reader* reader_of(Target& target, StreamId stream) {
  const auto found =
      std::find_if(target.readers.begin(), target.readers.end(),
                   [stream](const Target::Reader& each) { return each.stream == stream; });
  return found == target.readers.end() ? nullptr : &*found;
}

}  // namespace

bool Target::in_use() const {
  return std::any_of(readers.begin(), readers.end(),
                     [](const Reader& reader) { return reader.open > 0; });
}

void Releases::use(const TargetRef& target, StreamId consumer, Task* task) {
  if (!reader_of(*target, consumer)) target->readers.push_back({consumer});
  if (!task || !task->in_node) {
    target->escaped = true;
    return;
  }
  ++reader_of(*target, consumer)->open;
  task->uses.push_back({target, consumer});
}

void Releases::let_go(const TargetRef& target, Task* task) {
  target->kept = false;
  if (!target->in_use()) finish(target, task);
}

void Releases::node_ran(Task& task) {
  task.in_node = false;
  if (task.uses.empty()) return;
  record(task);
  const std::vector<TargetRef> due = std::exchange(task.due, {});
  close(task);
  for (const TargetRef& target : due) release(*target);
}

void Releases::task_ends(Task& task) {
  record(task);
  close(task);
}

void Releases::task_ended(Task& task) {
  for (const TargetRef& target : std::exchange(task.due, {})) release(*target);
}

// Records one event on each stream.
void Releases::record(Task& task) {
  std::vector<StreamId> streams;
  for (const Task::Use& use : task.uses) {
    reader_of(*use.target, use.consumer)->done = true;
    if (std::find(streams.begin(), streams.end(), use.consumer) == streams.end()) {
      streams.push_back(use.consumer);
    }
  }
  if (!needed_) return;
  for (const StreamId stream : streams) told_.push_back({Step::kNodeDone, stream});
}

void Releases::close(Task& task) {
  for (const auto& [target, consumer] : std::exchange(task.uses, {})) {
    --reader_of(*target, consumer)->open;
    target->escaped |= target->storage.use_count() > 1;
    if (!target->in_use() && !target->kept) finish(target, &task);
  }
}

void Releases::finish(const TargetRef& target, Task* task) {
  if (target->readers.empty() || !needed_) return;
  if (target->escaped || target->storage.use_count() > 1) {
    for (Target::Reader& reader : target->readers) reader.done = false;
    release(*target);
  } else if (task) {
    task->due.push_back(target);
  } else {
    release(*target);
  }
}

void Releases::release(const Target& target) {
  for (const Target::Reader& reader : target.readers) {
    if (reader.done) {
      told_.push_back({Step::kReleaseAfterNode, target.owner.value_or(StreamId{})});
    } else {
      told_.push_back({Step::kEscaped, reader.stream});
    }
  }
}

}  // namespace ferry::verify
