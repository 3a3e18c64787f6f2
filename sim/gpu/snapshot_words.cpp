#include "sim/gpu/snapshot_words.h"

#include <array>
#include <cstdio>

namespace ferry::sim {
namespace {

std::string hex(std::uint64_t address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(address));
  return text.data();
}

}  // namespace

std::string in_words(const MemoryEvent& event) {
  std::string text =
      std::string(name(event.action)) + " of " + std::to_string(event.bytes) + " bytes";
  if (event.action != MemoryAction::kOom) text += " at " + hex(event.address);
  return text + " on stream " + std::to_string(event.stream);
}

std::string in_words(const MemorySegment& segment) {
  std::string text = "a segment of " + std::to_string(segment.bytes) + " bytes at " +
                     hex(segment.address) + " with";
  for (const MemoryBlock& block : segment.blocks) {
    text += " " + std::to_string(block.bytes) + " " + std::string(name(block.state));
  }
  return text;
}

}  // namespace ferry::sim
