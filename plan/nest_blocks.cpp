#include "plan/nest_blocks.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ferry::plan {

NestBlocks::NestBlocks(const SpanModel& model, std::size_t most) {
  cut(model, most);
  set_blocks(model);
  set_made(model);
  for (const bool held : {false, true}) set_direct(model, held);
  set_through(model);
  set_frontiers();
  set_retained();
}

void NestBlocks::cut(const SpanModel& model, std::size_t most) {
  const std::size_t all = model.operators.size();
  std::vector<std::int64_t> across(all + 1, 0);  // bytes made before the cut and needed after it
  for (const ModelStorage& storage : model.storages) {
    across[storage.maker + 1] += storage.bytes;
    across[storage.last + 1] -= storage.bytes;
  }
  for (std::size_t i = 1; i <= all; ++i) across[i] += across[i - 1];
  const std::size_t each = (all + most - 1) / std::max<std::size_t>(most, 1);
  firsts_ = {0};
  for (std::size_t from = 1; from < all; from += each) {
    const std::size_t to = std::min(from + each, all);
    const auto least = std::min_element(across.begin() + static_cast<std::ptrdiff_t>(from),
                                        across.begin() + static_cast<std::ptrdiff_t>(to));
    firsts_.push_back(static_cast<std::size_t>(least - across.begin()));
  }
  if (all > 0) firsts_.push_back(all);
  for (std::size_t block = 0; block + 1 < firsts_.size(); ++block) {
    block_of_.resize(firsts_[block + 1], block);
  }
}

void NestBlocks::set_blocks(const SpanModel& model) {
  const std::size_t all = model.operators.size();
  for (const ModelOperator& op : model.operators) {
    const auto written = [&](std::uint32_t s) { return model.storages[s].written; };
    again_.push_back(op.again && std::none_of(op.makes.begin(), op.makes.end(), written));
    std::optional<std::size_t> until;
    for (const std::uint32_t s : op.makes) {
      const ModelStorage& storage = model.storages[s];
      if (storage.saved) until = std::min(until.value_or(all), block_of_[storage.last]);
    }
    saved_until_.push_back(until.value_or(0));
  }
  for (std::size_t block = 0; block < blocks(); ++block) {
    std::int64_t beside = 0, saved = 0;
    for (std::size_t op = firsts_[block]; op < firsts_[block + 1]; ++op) {
      beside = std::max(beside, model.operators[op].beside - model.least_bytes);
      saved += model.operators[op].saved_bytes;
    }
    beside_.push_back(beside);
    saved_.push_back(saved);
    const ModelOperator& last = model.operators[firsts_[block + 1] - 1];
    carried_.push_back(std::max<std::int64_t>(last.carried - model.least_bytes, 0));
    std::size_t joined = firsts_[block] + 1;
    while (joined < all && model.operators[joined - 1].joins_next) ++joined;
    const auto past = std::upper_bound(firsts_.begin(), firsts_.end(), joined);
    reach_.push_back(static_cast<std::size_t>(past - firsts_.begin()) - 1);
  }
}

void NestBlocks::set_made(const SpanModel& model) {
  for (const ModelStorage& storage : model.storages) {
    made_.push_back({.block = block_of_[storage.maker],
                     .bytes = storage.bytes,
                     .saved = storage.saved,
                     .again = again_[storage.maker]});
  }
  const auto use = [this](std::uint32_t s, std::size_t block, bool saves) {
    std::vector<Use>& uses = made_[s].uses;
    if (!saves && block == made_[s].block) return;  // the block reads its own result
    if (uses.empty() || uses.back().block != block) uses.push_back({block, saves});
    uses.back().saves |= saves;
  };
  for (std::size_t op = 0; op < model.operators.size(); ++op) {
    for (const std::uint32_t s : model.operators[op].reads) use(s, block_of_[op], false);
    for (const std::uint32_t s : model.operators[op].saves) use(s, block_of_[op], true);
  }
}

// Goes from the sweep's end to its begin: the nodes' saves are needed, and then the inputs of the
// operators that make them.
void NestBlocks::set_direct(const SpanModel& model, bool held) {
  std::vector<Direct>& direct = direct_[held ? 1 : 0];
  direct.assign(width() * width(), {});
  for (std::size_t end = 1; end < width(); ++end) {
    std::vector<bool> asked(model.storages.size(), false);
    const auto makes = [&](std::uint32_t s) {
      const ModelStorage& storage = model.storages[s];
      return again_[storage.maker] && !(held && is_asked_from(storage.maker, end));
    };
    for (std::size_t op = firsts_[end]; op-- > 0;) {
      const ModelOperator& here = model.operators[op];
      for (const std::uint32_t s : here.saves) asked[s] = asked[s] || makes(s);
      bool runs = false;
      for (const std::uint32_t s : here.makes) runs = runs || asked[s];
      if (!runs || !again_[op]) continue;
      direct[at(block_of_[op], end)].ns += here.ns;
      for (const std::uint32_t s : here.reads) asked[s] = asked[s] || makes(s);
    }
    for (std::size_t s = 0; s < made_.size(); ++s) {
      const Made& made = made_[s];
      if (made.block >= end || !makes(static_cast<std::uint32_t>(s))) continue;
      // Reads within the block are over when the block has run.
      const bool stays = !made.uses.empty() && made.uses.front().block < end;
      if (stays) direct[at(made.block, end)].bytes += made.bytes;
    }
  }
}

void NestBlocks::set_through(const SpanModel& model) {
  through_ns_.assign(width() * width(), 0);
  through_bytes_.assign(width() * width(), 0);
  const std::size_t all = model.operators.size();
  std::vector<std::vector<std::uint32_t>> dies(all);  // storages, by the last operator needing it
  for (std::size_t s = 0; s < model.storages.size(); ++s) {
    if (made_[s].again) dies[model.storages[s].last].push_back(static_cast<std::uint32_t>(s));
  }
  for (std::size_t begin = 0; begin < blocks(); ++begin) {
    std::int64_t alive = 0, most = 0;
    for (std::size_t op = firsts_[begin]; op < all; ++op) {
      for (const std::uint32_t s : model.operators[op].makes) {
        if (made_[s].again) alive += made_[s].bytes;
      }
      most = std::max(most, alive);
      for (const std::uint32_t s : dies[op]) {
        if (made_[s].block >= begin) alive -= made_[s].bytes;
      }
      through_bytes_[at(begin, block_of_[op] + 1)] = most;
    }
  }
  for (std::size_t end = 1; end < width(); ++end) {
    std::vector<bool> asked(model.storages.size(), false);
    for (std::size_t s = 0; s < model.storages.size(); ++s) {
      asked[s] = made_[s].again && block_of_[model.storages[s].last] >= end;
    }
    sim::Time ns = 0;
    for (std::size_t op = firsts_[end]; op-- > 0;) {
      const ModelOperator& here = model.operators[op];
      bool runs = false;
      for (const std::uint32_t s : here.makes) runs = runs || asked[s];
      if (runs && again_[op]) {
        ns += here.ns;
        for (const std::uint32_t s : here.reads) asked[s] = asked[s] || made_[s].again;
      }
      through_ns_[at(block_of_[op], end)] = ns;
    }
  }
}

void NestBlocks::set_frontiers() {
  frontiers_.assign(width() * width() * width(), 0);
  for (std::size_t middle = 1; middle < blocks(); ++middle) {
    std::int64_t* const here = &frontiers_[middle * width() * width()];
    for (const Made& made : made_) {
      if (!made.again || made.block >= middle) continue;
      const auto next = std::find_if(made.uses.begin(), made.uses.end(),
                                     [&](const Use& use) { return use.block >= middle; });
      if (next != made.uses.end()) here[at(made.block, next->block + 1)] += made.bytes;
    }
    // Two-dimensional sums: over makers from `begin` on, and over first uses before `end`.
    for (std::size_t begin = middle; begin-- > 0;) {
      for (std::size_t end = 1; end < width(); ++end) {
        std::int64_t& sum = here[at(begin, end)];
        sum += here[at(begin, end - 1)];
        if (begin + 1 < middle) {
          sum += here[at(begin + 1, end)] - here[at(begin + 1, end - 1)];
        }
      }
    }
  }
}

void NestBlocks::set_retained() {
  asked_later_.assign(width() * width(), 0);
  held_.assign(width() * width(), 0);
  for (std::size_t begin = 0; begin < blocks(); ++begin) {
    for (std::size_t end = begin + 1; end < width(); ++end) {
      for (const Made& made : made_) {
        if (made.block >= end) continue;
        const bool inside = made.block >= begin;
        const auto asks = [&](const Use& use) { return use.block >= begin && use.block < end; };
        if (made.saved) {
          const bool later = !made.uses.empty() && made.uses.back().block >= end;
          if (inside && !made.again) held_[at(begin, end)] += made.bytes;
          if (inside && made.again && later) asked_later_[at(begin, end)] += made.bytes;
        } else if (!inside || !made.again) {
          const bool asked = std::any_of(made.uses.begin(), made.uses.end(), asks);
          if (asked) held_[at(begin, end)] += made.bytes;
        }
      }
    }
  }
}

}  // namespace ferry::plan
