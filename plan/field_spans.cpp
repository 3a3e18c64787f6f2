#include "plan/field_spans.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <set>

#include "formats/modules.h"
#include "formats/spans.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Number of equal steps of the knapsack's budget, from nothing to all bytes. Larger: more
// candidates.
constexpr std::int64_t kShares = 20;
// Number of slots in which dp_knapsack counts all bytes. Larger: less rounding, more time.
constexpr std::int64_t kSlots = 1'000;

// Names of matrix products, and of other compute-intensive operators (without attention).
constexpr std::array<std::string_view, 4> kProducts = {"mm", "addmm", "bmm", "baddbmm"};
constexpr std::array<std::string_view, 3> kOthers = {"convolution", "upsample_bilinear2d",
                                                     "_scaled_mm"};

// Returns "mm" for "aten.mm.default".
std::string_view bare(std::string_view name) {
  if (name.starts_with("aten.")) name.remove_prefix(5);
  return name.substr(0, name.find('.'));
}

bool is_product(std::string_view name) {
  return std::ranges::find(kProducts, bare(name)) != kProducts.end();
}

// True if `is` holds for one of the program's operators that are the operator `op` of the choices.
bool any_of(const SpanChoices& choices, std::size_t op, const std::vector<std::string>& names,
            bool (*is)(std::string_view)) {
  for (std::uint64_t at = choices.first_place(op); at < choices.first_place(op + 1); ++at) {
    if (is(names[at])) return true;
  }
  return false;
}

void keep(PlanSpan& span, const SpanChoices& choices, std::size_t op) {
  for (std::uint64_t at = choices.first_place(op); at < choices.first_place(op + 1); ++at) {
    span.keep.push_back(at);
  }
}

// Makes the spans between kept operators. Each kept operator ends a span, and none begins with one.
std::vector<PlanSpan> between(const SpanChoices& choices, const std::vector<bool>& kept) {
  std::vector<PlanSpan> spans;
  bool open = false;
  for (std::size_t op = 0; op < choices.operators(); ++op) {
    const bool stays = kept[op] || !choices.runs_again(op);
    if (!open && stays) continue;
    if (!open) spans.push_back({.first = choices.first_place(op)});
    spans.back().last = choices.first_place(op + 1) - 1;
    if (stays) keep(spans.back(), choices, op);
    open = !kept[op] && choices.joins_next(op);
  }
  return spans;
}

}  // namespace

std::vector<bool> dp_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes) {
  std::int64_t all = 1;
  for (const KnapsackItem& item : items) all += item.bytes;
  const auto slots = [all](std::int64_t of) {
    return static_cast<std::size_t>((Wide{of} * kSlots + all - 1) / all);
  };
  const std::size_t width = static_cast<std::size_t>(Wide{bytes} * kSlots / all) + 1;
  // The most total time of the first i items, by slots.
  std::vector<std::vector<std::int64_t>> most(items.size() + 1, std::vector<std::int64_t>(width));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t needed = slots(items[i].bytes);
    for (std::size_t room = 0; room < width; ++room) {
      most[i + 1][room] = most[i][room];
      if (needed > room) continue;
      most[i + 1][room] = std::max(most[i + 1][room], most[i][room - needed] + items[i].ns);
    }
  }
  std::vector<bool> kept(items.size(), false);
  std::size_t room = width - 1;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (most[i + 1][room] == most[i][room]) continue;
    kept[i] = true;
    room -= slots(items[i].bytes);
  }
  return kept;
}

std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, std::int64_t bytes) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return Wide{items[a].ns} * items[b].bytes > Wide{items[b].ns} * items[a].bytes;
  });
  std::vector<bool> kept(items.size(), false);
  for (const std::size_t i : order) {
    if (items[i].bytes > bytes) continue;
    kept[i] = true;
    bytes -= items[i].bytes;
  }
  return kept;
}

bool is_compute_intensive(std::string_view name) {
  const std::string_view op = bare(name);
  return is_product(name) || std::ranges::find(kOthers, op) != kOthers.end() ||
         op.find("attention") != std::string_view::npos;
}

std::vector<std::vector<PlanSpan>> knapsack_spans(const SpanChoices& choices,
                                                  const std::vector<std::string>& names) {
  std::vector<KnapsackItem> items;
  std::vector<std::size_t> ops;  // by item
  std::int64_t all = 0;
  for (std::size_t op = 0; op < choices.operators(); ++op) {
    if (!any_of(choices, op, names, is_compute_intensive)) continue;
    const std::int64_t bytes = choices.made_bytes(op);
    items.push_back({choices.ns(op), bytes});
    ops.push_back(op);
    all += bytes;
  }
  std::set<std::vector<bool>> seen;
  std::vector<std::vector<PlanSpan>> found;
  for (const auto solve : {dp_knapsack, greedy_knapsack}) {
    for (std::int64_t share = 0; share <= kShares; ++share) {
      const std::vector<bool> chosen =
          solve(items, static_cast<std::int64_t>(Wide{all} * share / kShares));
      std::vector<bool> kept(choices.operators(), false);
      for (std::size_t i = 0; i < ops.size(); ++i) kept[ops[i]] = chosen[i];
      if (seen.insert(kept).second) found.push_back(between(choices, kept));
    }
  }
  return found;
}

std::vector<PlanSpan> selective_spans(const Program& program, const SpanChoices& choices,
                                      const std::vector<std::string>& names) {
  const std::vector<std::string> blocks = segment_modules(program);
  const std::vector<OperatorRange> ranges = operator_ranges(program);
  std::vector<PlanSpan> spans;
  std::size_t op = 0;
  std::vector<ModuleRun> runs = module_runs(program.codes[*spanned_code(program)].statements);
  std::ranges::sort(runs, {}, &ModuleRun::begin);
  for (const ModuleRun& run : runs) {
    if (std::ranges::find(blocks, run.module) == blocks.end()) continue;
    bool open = false;
    std::size_t products = 0;
    while (op < choices.operators() && ranges[choices.first_place(op)].op < run.begin) ++op;
    for (; op < choices.operators() && ranges[choices.first_place(op)].op < run.end; ++op) {
      const bool product = any_of(choices, op, names, is_product);
      products += product;
      const bool intensive = any_of(choices, op, names, is_compute_intensive);
      const bool stays = !choices.runs_again(op) || (intensive && (!product || products % 2 == 1));
      if (open || !stays) {
        if (!open) spans.push_back({.first = choices.first_place(op)});
        spans.back().last = choices.first_place(op + 1) - 1;
        if (stays) keep(spans.back(), choices, op);
        open = choices.joins_next(op);
      }
    }
  }
  return spans;
}

}  // namespace ferry::plan
