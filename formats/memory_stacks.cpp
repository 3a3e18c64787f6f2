#include "formats/memory_stacks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "formats/limits.h"

namespace ferry {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

// Returns the text, cut to a length that no path exceeds; empty if it is missing or no text.
std::string text_of(const Document& document, const Value& dict, std::string_view key) {
  const Value* value = document.find(dict, key);
  if (value == nullptr || value->kind != Kind::kText) return "";
  return std::string(value->text.substr(0, limits::kNameBytes));
}

// Returns 0 if it is missing or no integer.
std::int64_t integer_of(const Document& document, const Value& dict, std::string_view key) {
  const Value* value = document.find(dict, key);
  return value == nullptr || value->kind != Kind::kInteger ? 0 : value->integer;
}

}  // namespace

std::uint32_t StackReader::frame(const Value& dict) {
  const auto [known, fresh] = dicts_.try_emplace(&dict, 0);
  if (!fresh) return known->second;
  MemoryFrame frame;
  if (dict.kind == Kind::kDict) {
    frame = {text_of(document_, dict, "filename"), text_of(document_, dict, "name"),
             integer_of(document_, dict, "line")};
  }
  const auto next = static_cast<std::uint32_t>(frames_.size());
  known->second = frames_.try_emplace(std::move(frame), next).first->second;
  return known->second;
}

StackId StackReader::stack_of(const Value& dict) {
  const Value* list = document_.find(dict, "frames");
  if (list == nullptr || list->kind != Kind::kList || list->items.empty()) return kNoStack;
  const auto [known, fresh] = lists_.try_emplace(list, kNoStack);
  if (!fresh) return known->second;
  std::vector<std::uint32_t> stack;
  for (const pickle::Id id : list->items) stack.push_back(frame(document_[id]));
  const auto next = static_cast<StackId>(stacks_.size() + 1);
  known->second = stacks_.try_emplace(std::move(stack), next).first->second;
  return known->second;
}

void StackReader::move_to(MemorySnapshot& snapshot) {
  snapshot.frames.resize(frames_.size());
  for (const auto& [frame, number] : frames_) snapshot.frames[number] = frame;
  snapshot.stacks.resize(stacks_.empty() ? 0 : stacks_.size() + 1);
  for (const auto& [stack, number] : stacks_) snapshot.stacks[number] = stack;
}

std::vector<MemoryMark> read_marks(const Document& document) {
  std::vector<MemoryMark> marks;
  if (document.root().kind != Kind::kDict) return marks;
  const Value* list = document.find(document.root(), "external_annotations");
  if (list == nullptr || list->kind != Kind::kList) return marks;
  for (const pickle::Id id : list->items) {
    const Value& dict = document[id];
    if (dict.kind != Kind::kDict) continue;
    const std::string stage = text_of(document, dict, "stage");
    if (stage != "START" && stage != "END") continue;
    marks.push_back({text_of(document, dict, "name"), stage == "START",
                     std::max<std::int64_t>(integer_of(document, dict, "time_us"), 0)});
  }
  return marks;
}

}  // namespace ferry
