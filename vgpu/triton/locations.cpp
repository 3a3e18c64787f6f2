#include "vgpu/triton/locations.h"

#include <cstdlib>
#include <string_view>

namespace ferry::vgpu::triton {
namespace {

constexpr int kDeepest = 64;  // aliases that name each other end here
constexpr std::string_view kLibrary = "/triton/language/";

// Returns the place of `separator` outside brackets and quotes, or npos.
std::size_t find_outside(std::string_view text, std::string_view separator) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (depth == 0 && text.substr(i).starts_with(separator)) return i;
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
  }
  return std::string_view::npos;
}

// The text between the first `open` and the last character.
std::string inside(const std::string& text, char open) {
  const std::size_t begin = text.find(open);
  return begin == std::string::npos ? "" : text.substr(begin + 1, text.size() - begin - 2);
}

}  // namespace

std::uint32_t LocationTexts::add(const std::string& text) {
  const auto [found, is_new] =
      numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return found->second;
}

Location LocationTexts::resolve(const std::string& text, int depth) const {
  if (depth > kDeepest || text.empty()) return {};
  if (text[0] == '#') {
    const auto found = aliases_.find(text);
    return found == aliases_.end() ? Location{} : resolve(found->second, depth + 1);
  }
  if (text[0] == '"') {
    const std::size_t end = text.find('"', 1);
    if (end == std::string::npos) return {};
    const std::string rest = text.substr(end + 1);
    if (rest.starts_with(":")) {
      return {text.substr(1, end - 1),
              static_cast<int>(std::strtol(rest.c_str() + 1, nullptr, 10))};
    }
    return resolve(inside(rest, '('), depth + 1);
  }
  if (text.starts_with("callsite(")) {
    const std::string call = inside(text, '(');
    const std::size_t at = find_outside(call, " at ");
    if (at == std::string::npos) return {};
    const Location inner = resolve(call.substr(0, at), depth + 1);
    const bool is_users = !inner.file.empty() && inner.file.find(kLibrary) == std::string::npos;
    return is_users ? inner : resolve(call.substr(at + 4), depth + 1);
  }
  if (text.starts_with("fused")) {
    const std::string parts = inside(text, '[');
    return resolve(parts.substr(0, find_outside(parts, ", ")), depth + 1);
  }
  return {};
}

std::vector<Location> LocationTexts::resolve() const {
  std::vector<Location> all;
  for (const std::string& text : texts_) all.push_back(resolve(text, 0));
  return all;
}

}  // namespace ferry::vgpu::triton
