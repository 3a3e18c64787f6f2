#include "formats/alloc_conf.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "formats/error.h"
#include "formats/printable.h"

namespace ferry {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kMinLargeMb = 10;
constexpr std::int64_t kMostMb = std::numeric_limits<std::int64_t>::max() / kMiB;

// Splits the text into names, values and the characters ",:[]", without white space.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) tokens.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (std::string_view(",:[]").find(c) != std::string_view::npos) {
      end_word();
      tokens.emplace_back(1, c);
    } else if (std::string_view(" \t\n\v\f\r").find(c) == std::string_view::npos) {
      word += c;
    }
  }
  end_word();
  return tokens;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& source, OtherOptions others)
      : source_(source), others_(others), tokens_(tokens_of(text)) {}

  AllocConf parse() {
    while (at_ < tokens_.size()) {
      option_ = tokens_[at_++];
      take(":");
      parse_option();
      if (at_ < tokens_.size()) take(",");
    }
    check_least();
    if (conf_.expandable_segments && conf_.large_segment_bytes % (2 * kMiB) != 0) {
      option_ = "large_segment_size_mb";
      refuse("expected an even number with expandable_segments: the driver maps pages of 2 MiB");
    }
    return conf_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(source_, 0, (option_.empty() ? "" : printable(option_) + ": ") + why);
  }

  std::string found() const {
    return at_ < tokens_.size() ? "'" + printable(tokens_[at_]) + "'" : "the end";
  }
  bool is_at(std::string_view token) const { return at_ < tokens_.size() && tokens_[at_] == token; }
  void take(std::string_view token) {
    if (!is_at(token)) refuse("expected '" + std::string(token) + "', found " + found());
    ++at_;
  }

  template <class Number>
  Number number(const char* expected) {
    Number value{};
    if (at_ < tokens_.size()) {
      const std::string& text = tokens_[at_];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) {
        ++at_;
        return value;
      }
    }
    refuse(std::string("expected ") + expected + ", found " + found());
  }

  bool flag() {
    if (!is_at("True") && !is_at("False")) refuse("expected True or False, found " + found());
    return tokens_[at_++] == "True";
  }

  std::int64_t mebibytes(const char* expected, std::int64_t least) {
    const std::size_t from = at_;
    const auto mb = number<std::int64_t>(expected);
    if (mb < least || mb > kMostMb) {
      at_ = from;
      refuse(std::string("expected ") + expected + ", found " + found());
    }
    return mb * kMiB;
  }

  double fraction(const char* expected, bool with_ends) {
    const std::size_t from = at_;
    const auto value = number<double>(expected);
    const bool inside = with_ends ? value >= 0 && value <= 1 : value > 0 && value < 1;
    if (!inside) {
      at_ = from;
      refuse(std::string("expected ") + expected + ", found " + found());
    }
    return value;
  }

  // These options must be at least the size of a large segment, which may come later in the text.
  std::int64_t at_least_large() {
    const std::int64_t bytes = mebibytes("MiB, at least large_segment_size_mb", 0);
    at_least_large_.emplace_back(option_, bytes);
    return bytes;
  }
  void check_least() {
    for (const auto& [option, bytes] : at_least_large_) {
      if (bytes >= conf_.large_segment_bytes) continue;
      option_ = option;
      refuse("expected at least large_segment_size_mb, which is " +
             std::to_string(conf_.large_segment_bytes / kMiB) + ", found '" +
             std::to_string(bytes / kMiB) + "'");
    }
  }

  void parse_option();
  void parse_ignored();
  void skip();
  void parse_divisions();
  std::int64_t division(const char* expected, bool may_be_zero);
  std::size_t interval();

  const std::string& source_;
  OtherOptions others_;
  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  std::string option_;
  std::vector<std::pair<std::string, std::int64_t>> at_least_large_;  // by option
  AllocConf conf_;
};

void Parser::parse_option() {
  if (option_ == "expandable_segments") {
    conf_.expandable_segments = flag();
  } else if (option_ == "large_segment_size_mb") {
    conf_.large_segment_bytes = mebibytes("MiB, more than 10", kMinLargeMb + 1);
  } else if (option_ == "max_split_size_mb") {
    conf_.max_split_bytes = at_least_large();
  } else if (option_ == "max_non_split_rounding_mb") {
    conf_.max_non_split_rounding_bytes = at_least_large();
  } else if (option_ == "roundup_power2_divisions") {
    parse_divisions();
  } else if (option_ == "garbage_collection_threshold") {
    conf_.garbage_collection_threshold = fraction("a number between 0 and 1", false);
  } else if (option_ == "per_process_memory_fraction") {
    conf_.per_process_memory_fraction = fraction("a number from 0 to 1", true);
  } else {
    parse_ignored();
  }
}

// Parses options that have no effect here, and rejects those that are not modelled.
void Parser::parse_ignored() {
  if (option_ == "backend") {
    if (is_at("cudaMallocAsync")) refuse("cudaMallocAsync is not simulated: expected native");
    if (!is_at("native")) refuse("expected native, found " + found());
    ++at_;
  } else if (others_ == OtherOptions::kSkipped) {
    skip();
  } else if (option_ == "release_lock_on_cudamalloc" ||
             option_ == "graph_capture_record_stream_reuse" ||
             option_ == "pinned_use_cuda_host_register") {
    flag();
  } else if (option_ == "pinned_use_background_threads") {
    if (flag()) refuse("True is not simulated: expected False");
  } else if (option_ == "pinned_num_register_threads") {
    const std::size_t from = at_;
    if (division("a power of two, at most 128", false) > 128) {
      at_ = from;
      refuse("expected a power of two, at most 128, found " + found());
    }
  } else if (option_ == "pinned_reserve_segment_size_mb") {
    if (mebibytes("MiB", 0) != 0) refuse("a reserved segment is not simulated: expected 0");
  } else {
    refuse(
        "expected an option of PYTORCH_CUDA_ALLOC_CONF: expandable_segments, "
        "large_segment_size_mb, max_split_size_mb, max_non_split_rounding_mb, "
        "roundup_power2_divisions, garbage_collection_threshold or per_process_memory_fraction");
  }
}

// Skips a value, which may be a list.
void Parser::skip() {
  int depth = 0;
  for (; at_ < tokens_.size() && (depth > 0 || !is_at(",")); ++at_) {
    if (is_at("[")) ++depth;
    if (is_at("]")) --depth;
  }
}

std::int64_t Parser::division(const char* expected, bool may_be_zero) {
  const std::size_t from = at_;
  const auto value = number<std::int64_t>(expected);
  const bool is_power = value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
  if (!is_power && !(may_be_zero && value == 0)) {
    at_ = from;
    refuse(std::string("expected ") + expected + ", found " + found());
  }
  return value;
}

// Reads a size in MiB and returns its index among the divisions.
std::size_t Parser::interval() {
  const std::int64_t mb = division("a size in MiB that is a power of two, or '>'", false);
  const auto place = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(mb)) - 1);
  return std::min(place, conf_.roundup_power2_divisions.size() - 1);
}

// Parses one number for all sizes, or a list such as [64:8,256:4,>:1]. In a list, smaller sizes
// than the first one get its value, and sizes between two listed ones get 0.
void Parser::parse_divisions() {
  auto& divisions = conf_.roundup_power2_divisions;
  if (!is_at("[")) {
    divisions.fill(division("a power of two, or [SIZE:DIVISIONS,...]", false));
    return;
  }
  ++at_;
  std::size_t next = 1;  // the index after the latest size; 2 MiB without one, as in PyTorch
  bool first = true;
  while (!is_at("]")) {
    const bool rest = is_at(">");
    if (rest) ++at_;
    const std::size_t place = rest ? next : interval();
    take(":");
    const std::int64_t value = division("divisions: a power of two, or 0", true);
    const std::size_t from = rest || !first ? place : 0;
    const std::size_t to = rest ? divisions.size() : place + 1;
    for (std::size_t i = from; i < to; ++i) divisions[i] = value;
    if (!rest) {
      first = false;
      next = place + 1;
    }
    if (!is_at("]")) take(",");
  }
  ++at_;
}

std::string text_of(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// The first two numbers of "2.11.0"; nothing for any other text.
std::optional<std::pair<int, int>> version_of(std::string_view torch) {
  std::pair<int, int> version;
  const char* end = torch.data() + torch.size();
  const auto [dot, error] = std::from_chars(torch.data(), end, version.first);
  const bool known = error == std::errc{} && dot != end && *dot == '.' &&
                     std::from_chars(dot + 1, end, version.second).ec == std::errc{};
  return known ? std::optional(version) : std::nullopt;
}

}  // namespace

EqualBlocks equal_blocks_of(std::string_view torch) {
  const auto version = version_of(torch);
  if (!version || *version >= std::pair(2, 13)) return EqualBlocks::kOldestSegment;
  return *version == std::pair(2, 12) ? EqualBlocks::kOldestBlock : EqualBlocks::kLowestAddress;
}

bool keeps_workspaces(std::string_view torch) {
  const auto version = version_of(torch);
  return !version || *version < std::pair(2, 15);
}

std::int64_t AllocConf::divisions_for(std::int64_t bytes) const {
  const int log = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  const int last = static_cast<int>(roundup_power2_divisions.size()) - 1;
  return roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log - 20, 0, last))];
}

AllocConf parse_alloc_conf(std::string_view text, const std::string& source, OtherOptions others) {
  return Parser(text, source, others).parse();
}

std::string to_string(const AllocConf& conf) {
  const AllocConf usual;
  std::string text;
  const auto add = [&](const std::string& option) { text += (text.empty() ? "" : ",") + option; };
  if (conf.expandable_segments) add("expandable_segments:True");
  const auto add_mb = [&](const char* name, std::int64_t bytes) {
    add(std::string(name) + ":" + std::to_string(bytes / kMiB));
  };
  if (conf.large_segment_bytes != usual.large_segment_bytes) {
    add_mb("large_segment_size_mb", conf.large_segment_bytes);
  }
  if (conf.max_split_bytes) add_mb("max_split_size_mb", *conf.max_split_bytes);
  if (conf.max_non_split_rounding_bytes) {
    add_mb("max_non_split_rounding_mb", *conf.max_non_split_rounding_bytes);
  }
  if (conf.roundup_power2_divisions != usual.roundup_power2_divisions) {
    std::string list;
    for (std::size_t i = 0; i < conf.roundup_power2_divisions.size(); ++i) {
      list += (list.empty() ? "" : ",") + std::to_string(std::int64_t{1} << i) + ":" +
              std::to_string(conf.roundup_power2_divisions[i]);
    }
    add("roundup_power2_divisions:[" + list + "]");
  }
  if (conf.garbage_collection_threshold != 0) {
    add("garbage_collection_threshold:" + text_of(conf.garbage_collection_threshold));
  }
  if (conf.per_process_memory_fraction != 1) {
    add("per_process_memory_fraction:" + text_of(conf.per_process_memory_fraction));
  }
  return text;
}

}  // namespace ferry
