// libFuzzer's mutator, with an eye for lines: all that Ferry reads is lines of names and numbers.
//
// Bytes that change at random seldom leave a line that is still taken. So half of the mutations
// move whole lines, change one of them alone, or put a name or number of one line in place of
// another's, which is how two lines come to speak of one stream, slot or buffer.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Random = std::minstd_rand;
using Lines = std::vector<std::string>;

std::size_t below(Random& random, std::size_t count) { return random() % count; }

Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The texts in double quotes, and the runs of letters and digits outside of them.
std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at + 1;
    if (line[at] == '"') {
      end = line.find('"', at + 1);
      if (end == std::string_view::npos) break;
      found.push_back(line.substr(at, ++end - at));
    } else if (in_word(line[at])) {
      while (end < line.size() && in_word(line[end])) ++end;
      found.push_back(line.substr(at, end - at));
    }
    at = end;
  }
  return found;
}

void change_word(std::string& line, const std::string& other, Random& random) {
  const auto ours = words(line), theirs = words(other);
  if (ours.empty() || theirs.empty()) return;
  const std::string_view old = ours[below(random, ours.size())];
  const std::string fresh(theirs[below(random, theirs.size())]);
  line.replace(static_cast<std::size_t>(old.data() - line.data()), old.size(), fresh);
}

void change_alone(std::string& line) {
  const std::size_t most = line.size() * 2 + 16;
  std::string buffer = line;
  buffer.resize(most);
  const std::size_t size =
      LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(buffer.data()), line.size(), most);
  line = buffer.substr(0, size);
}

void change_lines(Lines& lines, Random& random) {
  const std::size_t one = below(random, lines.size()), other = below(random, lines.size());
  const auto at = [&lines](std::size_t i) {
    return lines.begin() + static_cast<std::ptrdiff_t>(i);
  };
  switch (below(random, 8)) {
    case 0:
      lines.erase(at(one));
      break;
    case 1:
      std::swap(lines[one], lines[other]);
      break;
    case 2:
      lines.insert(at(other), std::string(lines[one]));
      break;
    case 3:
      change_alone(lines[one]);
      break;
    default:
      change_word(lines[one], std::string(lines[other]), random);
      break;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Lines lines = split(text);
  if (lines.empty() || random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t i = 1 + below(random, 3); i > 0 && !lines.empty(); --i) {
    change_lines(lines, random);
  }
  std::string joined;
  for (const std::string& line : lines) joined.append(line).append("\n");
  if (joined.empty() || joined.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, joined.data(), joined.size());
  return joined.size();
}
