// Describes a trial in words for reports; trial.h declares the functions. The text has what differs
// from the simplest trial of its size. The kinds and sizes of layers, the copy streams and the
// window are always included.
//
// A plan and a choice of packs are only mentioned, and spans are only counted. So a trial cannot be
// made from the text: codec.h encodes it whole.
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "verify/programs/phrases.h"
#include "verify/programs/trial.h"

namespace ferry::verify {
namespace {

std::string segments_of(const Layer& layer) {
  static constexpr std::array<std::pair<SegmentBits, std::string_view>, 6> kNames = {{
      {kNoEarlyStop, "without early stop"},
      {kNoRandomState, "without random state"},
      {kNoCheck, "without determinism check"},
      {kOwnStream, "on its own stream"},
      {kReentrantBit, "reentrant"},
      {kSpanBit, "as spans of operators"},
  }};
  std::string text = "begins " + counted(layer.opens, "segment");
  for (const auto& [bit, name] : kNames) {
    if ((layer.segment & bit) != 0) text.append(" ").append(name);
  }
  return text;
}

std::string text_of(const Layer& layer, bool segments) {
  Phrases words;
  words.add(name(layer.kind));
  words.add(std::to_string(kSizes[static_cast<std::size_t>(layer.size)]) + " elements");
  words.add_if(layer.hold, "input held");
  words.add_if(layer.skip, "reads the held activation");
  words.add_if(layer.frozen, "frozen");
  if (!segments) return words.text();
  words.add(name(layer.extra));
  if (layer.opens > 0) words.add(segments_of(layer));
  words.add_if(layer.closes > 0, "ends " + counted(layer.closes, "segment"));
  return words.text();
}

// Counts layers from 1, as a reader does.
std::string layer_of(const Recipe& recipe, int index) {
  if (recipe.layers.empty()) return "no layer";
  return "layer " + std::to_string(index % static_cast<int>(recipe.layers.size()) + 1);
}

std::string bytes_of(std::int64_t bytes) {
  if (bytes == kAutomatic) return "automatic";
  return bytes == kUnlimited ? "unlimited bytes" : counted(bytes, "byte");
}

// A source leaves the window when either limit is reached. A limit of 0 bytes is not mentioned.
std::string window_of(const CoreOptions& options) {
  const bool packs = options.window_tensors != kUnlimited;
  const std::string bytes = bytes_of(options.window_bytes);
  if (!packs) return "window " + bytes;
  const std::string text = "window " + counted(options.window_tensors, "pack");
  return options.window_bytes == 0 ? text : text + " or " + bytes;
}

// PyTorch's policies by number: 0 and 1 save, 2 and 3 recompute, 4 and 5 offload.
std::string kept_of(const OpChoices& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] / 2 == 1) continue;
    text.append(text.empty() ? "" : ", ").append(choices[i] < 2 ? "save " : "offload ");
    text.append(kSelectiveOps[i]);
  }
  return text.empty() ? "nothing" : text;
}

std::int64_t inner_spans(const std::vector<DrawnSpan>& spans) {
  std::int64_t inner = 0;
  for (const DrawnSpan& span : spans) {
    inner += static_cast<std::int64_t>(span.inner.size()) + inner_spans(span.inner);
  }
  return inner;
}

}  // namespace

std::string text_of(const Recipe& recipe) {
  std::string layers = counted(static_cast<std::int64_t>(recipe.layers.size()), "layer");
  const char* before = ": ";
  for (const Layer& layer : recipe.layers) {
    layers.append(std::exchange(before, " | ")).append(text_of(layer, recipe.segments));
  }
  Phrases step;
  if (recipe.microbatches > 1) {
    step.add(std::to_string(recipe.microbatches) + " micro-batches");
    step.add(name(recipe.order));
  }
  step.add_if(recipe.retain, "retain_graph");
  step.add_if(recipe.embeds, "an input with a gradient");
  step.add_if(recipe.move, "a parameter that moves");
  step.add_if(recipe.sequence > 0, "a chain in " + counted(recipe.sequence, "segment"));
  step.add_if(recipe.segments && recipe.whole, "the whole forward checkpointed");
  if (recipe.derivatives > 1) {
    const std::string order = recipe.derivatives == 2 ? "second" : "third";
    step.add(order + " derivative by the weight of " + layer_of(recipe, recipe.differentiated));
  }
  if (recipe.failure != StepFailure::kNone) {
    step.add("first a step that fails at " + layer_of(recipe, recipe.failing_layer) + " (" +
             std::string(name(recipe.failure)) + ")");
  }
  return step.text().empty() ? layers : layers + "; " + step.text();
}

std::string text_of(const CoreOptions& options) {
  Phrases words;
  words.add(options.copy_streams == CopyStreams::kNone  ? "no copy stream"
            : options.copy_streams == CopyStreams::kOne ? "one copy stream"
                                                        : "two copy streams");
  words.add(window_of(options));
  words.add_if(options.host_memory == HostMemory::kPageable, "pageable memory");
  words.add_if(options.reload_pool == ReloadPool::kCopyStream, "reloads in the copy stream's pool");
  words.add_if(options.min_bytes > 0, "tensors of at least " + bytes_of(options.min_bytes));
  words.add_if(options.prefetch_bytes != 0, "prefetch " + bytes_of(options.prefetch_bytes));
  words.add_if(options.prefetch_tensors != kUnlimited,
               "reloads at most " + counted(options.prefetch_tensors, "pack") + " early");
  words.add_if(options.hold_bytes != 0, "hold " + bytes_of(options.hold_bytes));
  words.add_if(!options.offload.empty(), "only some packs");
  return words.text();
}

std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  out << text_of(trial.recipe);
  if (has_plan(trial)) out << "; with a plan of its segments";
  if (has_spans(trial)) {
    out << "; " << counted(static_cast<std::int64_t>(trial.spans.size()), "planned span");
    const std::int64_t inner = inner_spans(trial.spans);
    if (inner > 0) out << " with " << inner << " inside";
  }
  if (is_selective(trial)) out << "; its checkpoints keep: " << kept_of(trial.policies);
  return out << "; " << text_of(trial.options);
}

}  // namespace ferry::verify
