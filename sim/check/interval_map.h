// A map from half-open byte ranges of a flat 64-bit address space to values. The checkers keep in
// it what they know of memory: accesses, allocations, contents.
//
// The pieces are disjoint, and bytes without a value have no piece. An operation on [begin, end)
// cuts the pieces that reach beyond it, so it affects exactly these bytes. After a cut, both parts
// keep the value. `Advance` is called with the right part's value and the distance by which its
// start moved, so that contents that count from the start of a piece can be shifted.
//
// Allocators hand out the same ranges again and again, so the common operation is to find the piece
// that is exactly [begin, end) and to change its value in place. That is two binary searches and no
// allocation. Pieces lie in leaves of at most kLeaf, under one sorted table of the leaves' first
// addresses. Values lie in slots that do not move. A slot is recycled with its old value, so a
// value that owns a vector keeps its capacity.
//
// Pieces are merged only by merge(): neighbours with equal values stay two pieces. A reference to a
// value is valid until the next call that changes the map. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::check {

// The Advance for values that do not depend on the start of their piece.
struct SameValue {
  template <class T>
  void operator()(T&, std::uint64_t) const {}
};

template <class T, class Advance = SameValue, std::uint32_t kLeaf = 128>
class IntervalMap {
 public:
  IntervalMap() {
    static_assert(kLeaf >= 2);
    leaves_.push_back(std::make_unique_for_overwrite<Leaf>());
    first_.push_back(0);
  }

  std::size_t size() const { return slots_.size() - free_.size(); }

  // Returns the value at one address; nullptr if there is none.
  const T* find(std::uint64_t address) const {
    const Cursor c = seek(address);
    return has(c) && begin_of(c) <= address ? &value(c) : nullptr;
  }

  // Returns the value of the one piece that covers [begin, end); nullptr if none does.
  const T* covering(std::uint64_t begin, std::uint64_t end) const {
    const Cursor c = seek(begin);
    return has(c) && begin_of(c) <= begin && end_of(c) >= end ? &value(c) : nullptr;
  }

  // Does the same, and sets `piece_begin` to the beginning of the first piece that ends behind
  // `begin`, if there is one.
  const T* covering(std::uint64_t begin, std::uint64_t end, std::uint64_t& piece_begin) const {
    const Cursor c = seek(begin);
    if (!has(c)) return nullptr;
    piece_begin = begin_of(c);
    return piece_begin <= begin && end_of(c) >= end ? &value(c) : nullptr;
  }

  // Calls f(piece begin, piece end, const T&) for the pieces that meet [begin, end), uncut and in
  // order of address.
  template <class F>
  void visit(std::uint64_t begin, std::uint64_t end, F&& f) const {
    if (begin >= end) return;
    for (Cursor c = seek(begin); has(c) && begin_of(c) < end; c = next(c)) {
      f(begin_of(c), end_of(c), value(c));
    }
  }

  // Like visit(), but f may change the values.
  template <class F>
  void touch(std::uint64_t begin, std::uint64_t end, F&& f) {
    if (begin >= end) return;
    for (Cursor c = seek(begin); has(c) && begin_of(c) < end; c = next(c)) {
      f(begin_of(c), end_of(c), value(c));
    }
  }

  // Calls f(begin, end, T&) for the pieces inside [begin, end), cut at both ends.
  template <class F>
  void modify(std::uint64_t begin, std::uint64_t end, F&& f) {
    if (begin >= end) return;
    for (Cursor c = cut_front(seek(begin), begin); has(c) && begin_of(c) < end; c = next(c)) {
      c = cut_back(c, end);
      f(begin_of(c), end_of(c), value(c));
    }
  }

  // Like modify(), but gaps become pieces with the value T{} first: f sees every byte of the range.
  template <class F>
  void update(std::uint64_t begin, std::uint64_t end, F&& f) {
    if (begin >= end) return;
    Cursor c = cut_front(seek(begin), begin);
    for (std::uint64_t at = begin; at < end; c = next(c)) {
      if (!has(c) || begin_of(c) > at) {
        const std::uint64_t gap_end = has(c) ? std::min(end, begin_of(c)) : end;
        const std::uint32_t slot = take_slot();
        slots_[slot] = blank_;
        c = insert(c, at, gap_end, slot);
      } else {
        c = cut_back(c, end);
      }
      at = end_of(c);
      f(begin_of(c), at, value(c));
    }
  }

  // Makes [begin, end) one piece, after f(begin, end, const T&) has seen the old pieces, cut at
  // both ends. The caller must set the returned value: it is a recycled one, not T{}. The range
  // must not be empty.
  template <class F>
  T& merge(std::uint64_t begin, std::uint64_t end, F&& f) {
    Cursor c = seek(begin);
    if (has(c) && begin_of(c) == begin && end_of(c) == end) {
      f(begin, end, static_cast<const T&>(value(c)));
      return value(c);
    }
    c = clear(c, begin, end, f);
    return value(insert(c, begin, end, take_slot()));
  }

  void replace(std::uint64_t begin, std::uint64_t end, const T& value) {
    if (begin >= end) return;
    merge(begin, end, [](std::uint64_t, std::uint64_t, const T&) {}) = value;
  }

  // Removes the pieces for which f(begin, end, T&) is true, and packs the rest.
  template <class F>
  void erase_if(F&& f) {
    std::vector<std::unique_ptr<Leaf>> old;
    old.push_back(std::make_unique_for_overwrite<Leaf>());
    std::swap(old, leaves_);
    first_.assign(1, 0);
    for (const std::unique_ptr<Leaf>& from : old) {
      for (std::uint32_t i = 0; i < from->count; ++i) {
        if (f(from->begin[i], from->end[i], slots_[from->slot[i]])) {
          free_.push_back(from->slot[i]);
          continue;
        }
        if (leaves_.back()->count == kPacked) {
          leaves_.push_back(std::make_unique_for_overwrite<Leaf>());
          first_.push_back(from->begin[i]);
        }
        Leaf& into = *leaves_.back();
        into.begin[into.count] = from->begin[i];
        into.end[into.count] = from->end[i];
        into.slot[into.count++] = from->slot[i];
      }
    }
  }

  void erase(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    clear(seek(begin), begin, end, [](std::uint64_t, std::uint64_t, const T&) {});
  }

 private:
  struct Leaf {
    std::uint32_t count = 0;
    std::array<std::uint64_t, kLeaf> begin;
    std::array<std::uint64_t, kLeaf> end;
    std::array<std::uint32_t, kLeaf> slot;
  };

  // Names a piece or, if `at` is the count of the last leaf, the end of the map.
  struct Cursor {
    std::size_t leaf;
    std::uint32_t at;
  };

  bool has(Cursor c) const { return c.at < leaves_[c.leaf]->count; }
  std::uint64_t begin_of(Cursor c) const { return leaves_[c.leaf]->begin[c.at]; }
  std::uint64_t end_of(Cursor c) const { return leaves_[c.leaf]->end[c.at]; }
  T& value(Cursor c) { return slots_[leaves_[c.leaf]->slot[c.at]]; }
  const T& value(Cursor c) const { return slots_[leaves_[c.leaf]->slot[c.at]]; }

  Cursor settle(Cursor c) const {
    if (!has(c) && c.leaf + 1 < leaves_.size()) return {c.leaf + 1, 0};
    return c;
  }
  Cursor next(Cursor c) const { return settle({c.leaf, c.at + 1}); }

  // Returns the first piece that ends behind the address.
  Cursor seek(std::uint64_t address) const {
    const auto above = std::upper_bound(first_.begin() + 1, first_.end(), address);
    const auto leaf = static_cast<std::size_t>(above - first_.begin()) - 1;
    return settle({leaf, search(*leaves_[leaf], address)});
  }

  // Like std::upper_bound, but without branches, which no processor could predict here.
  static std::uint32_t search(const Leaf& leaf, std::uint64_t address) {
    const std::uint64_t* ends = leaf.end.data();
    for (std::uint32_t left = leaf.count; left > 0;) {
      const std::uint32_t half = (left + 1) / 2;
      ends += ends[half - 1] <= address ? half : 0;
      left -= half;
    }
    return static_cast<std::uint32_t>(ends - leaf.end.data());
  }

  std::uint32_t take_slot() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  // Makes room for one more piece in c's leaf. Returns the cursor that then names the same place.
  Cursor make_room(Cursor c) {
    Leaf& full = *leaves_[c.leaf];
    if (full.count < kLeaf) return c;
    auto right = std::make_unique_for_overwrite<Leaf>();
    // Ascending addresses fill their leaves; otherwise a leaf splits in halves.
    const bool append = c.at == kLeaf && c.leaf + 1 == leaves_.size();
    const std::uint32_t keep = append ? kLeaf - 1 : kLeaf / 2;
    std::copy(full.begin.begin() + keep, full.begin.end(), right->begin.begin());
    std::copy(full.end.begin() + keep, full.end.end(), right->end.begin());
    std::copy(full.slot.begin() + keep, full.slot.end(), right->slot.begin());
    right->count = kLeaf - keep;
    full.count = keep;
    const auto behind = static_cast<std::ptrdiff_t>(c.leaf) + 1;
    first_.insert(first_.begin() + behind, right->begin[0]);
    leaves_.insert(leaves_.begin() + behind, std::move(right));
    return c.at < keep ? c : Cursor{c.leaf + 1, c.at - keep};
  }

  // Puts a piece before the one that c names; returns the new piece's cursor.
  Cursor insert(Cursor c, std::uint64_t begin, std::uint64_t end, std::uint32_t slot) {
    c = make_room(c);
    Leaf& leaf = *leaves_[c.leaf];
    const auto open = [&](auto& array, auto x) {
      const auto at = array.begin() + c.at;
      std::copy_backward(at, array.begin() + leaf.count, array.begin() + leaf.count + 1);
      *at = x;
    };
    open(leaf.begin, begin);
    open(leaf.end, end);
    open(leaf.slot, slot);
    leaf.count++;
    if (c.at == 0) first_[c.leaf] = begin;
    return c;
  }

  // Takes a piece out; returns the cursor of the next one.
  Cursor remove(Cursor c) {
    Leaf& leaf = *leaves_[c.leaf];
    free_.push_back(leaf.slot[c.at]);
    const auto close = [&](auto& array) {
      std::copy(array.begin() + c.at + 1, array.begin() + leaf.count, array.begin() + c.at);
    };
    close(leaf.begin);
    close(leaf.end);
    close(leaf.slot);
    leaf.count--;
    if (leaf.count == 0 && leaves_.size() > 1) {
      const auto gone = static_cast<std::ptrdiff_t>(c.leaf);
      leaves_.erase(leaves_.begin() + gone);
      first_.erase(first_.begin() + gone);
      if (c.leaf == leaves_.size()) return {c.leaf - 1, leaves_[c.leaf - 1]->count};
      return {c.leaf, 0};
    }
    if (leaf.count > 0) first_[c.leaf] = leaf.begin[0];
    return settle(c);
  }

  // Cuts c's piece at an address inside it; returns the left part's cursor.
  Cursor cut(Cursor c, std::uint64_t at) {
    c = make_room(c);
    const std::uint64_t begin = begin_of(c);
    const std::uint64_t end = end_of(c);
    const std::uint32_t slot = take_slot();
    slots_[slot] = value(c);
    Advance{}(slots_[slot], at - begin);
    leaves_[c.leaf]->end[c.at] = at;
    insert({c.leaf, c.at + 1}, at, end, slot);
    return c;
  }
  Cursor cut_front(Cursor c, std::uint64_t begin) {
    return has(c) && begin_of(c) < begin ? next(cut(c, begin)) : c;
  }
  Cursor cut_back(Cursor c, std::uint64_t end) { return end_of(c) > end ? cut(c, end) : c; }

  template <class F>
  Cursor clear(Cursor c, std::uint64_t begin, std::uint64_t end, F&& f) {
    c = cut_front(c, begin);
    while (has(c) && begin_of(c) < end) {
      c = cut_back(c, end);
      f(begin_of(c), end_of(c), static_cast<const T&>(value(c)));
      c = remove(c);
    }
    return c;
  }

  static constexpr std::uint32_t kPacked = std::max(kLeaf * 3 / 4, std::uint32_t{1});

  std::vector<std::uint64_t> first_;  // each leaf's first address; unused for leaf 0
  std::vector<std::unique_ptr<Leaf>> leaves_;
  std::vector<T> slots_;
  std::vector<std::uint32_t> free_;
  T blank_{};
};

}  // namespace ferry::check
