#include "formats/name_ids.h"

#include <utility>

namespace ferry {

std::uint32_t NameIds::add(std::string_view text, std::uint32_t h, std::size_t at) {
  if (size() * 2 >= table_.size()) {
    grow();
    at = seek(text, h);
  }
  auto id = static_cast<std::uint32_t>(texts_.size());
  if (free_.empty()) {
    texts_.emplace_back(text);
  } else {
    id = free_.back();
    free_.pop_back();
    texts_[id] = text;
  }
  table_[at] = {h, id};
  count_++;
  return id;
}

void NameIds::grow() {
  std::vector<Slot> old(table_.size() * 2);
  std::swap(old, table_);
  const std::size_t mask = table_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    std::size_t at = slot.hash & mask;
    while (table_[at].id != kNone) at = (at + 1) & mask;
    table_[at] = slot;
  }
}

// Entries after a freed slot move up if their own position permits it (backward-shift deletion). So
// the table needs no tombstones, and stays small however long it is used.
void NameIds::erase(std::uint32_t id) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = seek(texts_[id], hash(texts_[id]));
  if (table_[hole].id != id) return;
  for (std::size_t at = (hole + 1) & mask; table_[at].id != kNone; at = (at + 1) & mask) {
    const std::size_t home = table_[at].hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = Slot{};
  texts_[id].clear();
  free_.push_back(id);
  count_--;
}

}  // namespace ferry
