#include "formats/pickle.h"

#include <array>
#include <bit>
#include <cstddef>

#include "formats/error.h"
#include "formats/printable.h"

namespace ferry::pickle {
namespace {

constexpr std::size_t kValuesMost = std::size_t{1} << 25;
// The most marks, that is unfinished lists, tuples and dictionaries. Python's own limit is lower.
constexpr std::size_t kDepthMost = 10'000;
constexpr Id kMark{0xffff'ffff};

struct Opcode {
  unsigned char code;
  std::string_view name;
};

// The instructions that this reader does not support.
constexpr Opcode kOthers[] = {
    {'F', "FLOAT"},        {'I', "INT"},
    {'L', "LONG"},         {'S', "STRING"},
    {'V', "UNICODE"},      {'P', "PERSID"},
    {'d', "DICT"},         {'g', "GET"},
    {'i', "INST"},         {'l', "LIST"},
    {'o', "OBJ"},          {'p', "PUT"},
    {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

std::string hex(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Document read() {
    while (!stopped_) {
      begin_ = at_;
      step(static_cast<unsigned char>(take(1)[0]));
    }
    return std::move(document_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(file_, 0, "byte " + std::to_string(begin_) + ": " + why);
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("the pickle ends in the middle");
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  // Little-endian.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  Id add(Value value) {
    if (document_.values_.size() >= kValuesMost) {
      refuse("more than " + std::to_string(kValuesMost) + " values");
    }
    document_.values_.push_back(std::move(value));
    return static_cast<Id>(document_.values_.size() - 1);
  }
  void push(Kind kind, std::int64_t integer = 0) {
    stack_.push_back(add({.kind = kind, .integer = integer, .text = {}, .items = {}}));
  }
  Id text(std::string_view bytes) { return add({.kind = Kind::kText, .text = bytes, .items = {}}); }
  void push_text(std::uint64_t length) { stack_.push_back(text(take(length))); }
  void push_bytes(std::uint64_t length) {
    stack_.push_back(add({.kind = Kind::kBytes, .text = take(length), .items = {}}));
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) refuse("the pickle ends in the middle");
    const std::string_view taken = take(end - at_);
    take(1);
    return taken;
  }

  // Pushes an object where Python would import something.
  void push_object(std::vector<Id> module_and_name) {
    stack_.push_back(add({.kind = Kind::kObject, .text = {}, .items = std::move(module_and_name)}));
  }
  // Replaces a function, with this many arguments on top of it, by an object.
  void call(int arguments) {
    for (int i = 0; i < arguments; ++i) pop();
    const Value called = document_[pop()];
    push_object(called.kind == Kind::kObject ? called.items : std::vector<Id>{});
  }

  // The top of the stack, which must be a value and not a mark.
  Id top() const {
    if (stack_.empty() || stack_.back() == kMark) refuse("a value is missing");
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  // Removes the values above the latest mark, and the mark. Returns the values.
  std::vector<Id> pop_to_mark() {
    if (marks_ == 0) refuse("a mark is missing");
    std::size_t from = stack_.size();
    while (stack_[from - 1] != kMark) --from;
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(from), stack_.end());
    stack_.resize(from - 1);
    --marks_;
    return items;
  }
  void push_tuple(std::vector<Id> items) {
    stack_.push_back(add({.kind = Kind::kTuple, .text = {}, .items = std::move(items)}));
  }
  void extend(Kind kind, const std::vector<Id>& items) {
    Value& into = document_.values_[static_cast<std::size_t>(top())];
    if (into.kind == Kind::kObject) return;  // its contents are not known
    if (into.kind != kind) {
      refuse("expected " + std::string(name(kind)) + ", found " + std::string(name(into.kind)));
    }
    if (kind == Kind::kDict && items.size() % 2 != 0) refuse("a key without a value");
    into.items.insert(into.items.end(), items.begin(), items.end());
  }

  void remember(std::uint64_t place) {
    // Python numbers them from 0.
    if (place > memo_.size())
      refuse("expected to remember value number " + std::to_string(memo_.size()));
    if (place == memo_.size()) memo_.push_back(kMark);
    memo_[static_cast<std::size_t>(place)] = top();
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size()) {
      refuse("value number " + std::to_string(place) + " was not remembered");
    }
    stack_.push_back(memo_[static_cast<std::size_t>(place)]);
  }

  // Reads a little-endian integer. Python writes as few bytes as possible; other programs may not.
  void push_long(std::uint64_t bytes) {
    auto size = static_cast<std::size_t>(bytes);
    const std::string_view all = bytes_.substr(at_, size);
    const auto is_sign = [&](std::size_t i) {  // true if the byte only repeats the sign
      const bool set = (static_cast<unsigned char>(all[i - 1]) & 0x80) != 0;
      return all[i] == (set ? '\xff' : '\0');
    };
    while (size > 8 && all.size() == bytes && is_sign(size - 1)) --size;
    if (size > 8) {
      take(bytes);
      return push(Kind::kBig);
    }
    std::uint64_t value = number(size);
    at_ += static_cast<std::size_t>(bytes) - size;
    const bool negative = size > 0 && size < 8 && (value >> (8 * size - 1)) != 0;
    if (negative) value |= ~std::uint64_t{0} << (8 * size);
    push(Kind::kInteger, static_cast<std::int64_t>(value));
  }
  void push_float() {
    std::uint64_t bits = 0;  // big-endian, unlike all other numbers
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    stack_.push_back(
        add({.kind = Kind::kFloat, .real = std::bit_cast<double>(bits), .text = {}, .items = {}}));
  }

  void step(unsigned char code);
  bool step_stack(unsigned char code);
  bool step_value(unsigned char code);
  bool step_object(unsigned char code);
  [[noreturn]] void refuse_opcode(unsigned char code);

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // where the instruction begins
  bool stopped_ = false;
  std::size_t marks_ = 0;
  std::vector<Id> stack_;
  std::vector<Id> memo_;
  Document document_;
};

void Reader::step(unsigned char code) {
  if (begin_ == 0 && code != 0x80) refuse("expected a pickle (of protocol 2 or later)");
  if (step_value(code) || step_object(code) || step_stack(code)) return;
  refuse_opcode(code);
}

// Instructions that make a value.
bool Reader::step_value(unsigned char code) {
  switch (code) {
    case 'N':
      return push(Kind::kNone), true;
    case 0x88:
    case 0x89:
      return push(Kind::kBool, code == 0x88 ? 1 : 0), true;
    case 'J':
      return push(Kind::kInteger, static_cast<std::int32_t>(number(4))), true;
    case 'K':
      return push(Kind::kInteger, static_cast<std::int64_t>(number(1))), true;
    case 'M':
      return push(Kind::kInteger, static_cast<std::int64_t>(number(2))), true;
    case 0x8a:
      return push_long(number(1)), true;
    case 0x8b:
      return push_long(number(4)), true;
    case 'G':
      return push_float(), true;
    case 0x8c:
      return push_text(number(1)), true;
    case 'X':
      return push_text(number(4)), true;
    case 0x8d:
      return push_text(number(8)), true;
    case ']':
      return push(Kind::kList), true;
    case '}':
      return push(Kind::kDict), true;
    case ')':
      return push(Kind::kTuple), true;
    default:
      return false;
  }
}

// Instructions that make other values than plain data, and rare forms of texts and bytes.
bool Reader::step_object(unsigned char code) {
  switch (code) {
    case 'T':
      return push_text(number(4)), true;
    case 'U':
      return push_text(number(1)), true;
    case 'B':
      return push_bytes(number(4)), true;
    case 'C':
      return push_bytes(number(1)), true;
    case 0x8e:
    case 0x96:
      return push_bytes(number(8)), true;
    case 'c': {
      const Id module = text(line());
      return push_object({module, text(line())}), true;
    }
    case 0x93: {
      const Id name = pop();
      return push_object({pop(), name}), true;
    }
    case 'R':
    case 0x81:
      return call(1), true;
    case 0x92:
      return call(2), true;
    case 'b':
      return pop(), true;  // drops the state of an object
    case 'Q':
      return pop(), push_object({}), true;
    case 0x82:
    case 0x83:
    case 0x84:
      return number(std::size_t{1} << (code - 0x82)), push_object({}), true;
    case 0x8f:
      return push_object({}), true;
    case 0x90:
      return extend(Kind::kObject, pop_to_mark()), true;
    case 0x91:
      return pop_to_mark(), push_object({}), true;
    default:
      return false;
  }
}

// Instructions that move values.
bool Reader::step_stack(unsigned char code) {
  switch (code) {
    case 0x80:
      if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5) {
        refuse("protocol " + std::to_string(protocol) + ": expected 2 to 5");
      }
      return true;
    case 0x95:
      return number(8), true;  // the length of a frame, which is not needed here
    case '.':
      if (stack_.size() != 1 || marks_ != 0) refuse("expected one value at the end");
      document_.root_ = top();
      return stopped_ = true;
    case '(':
      if (++marks_ > kDepthMost) refuse("nested deeper than " + std::to_string(kDepthMost));
      return stack_.push_back(kMark), true;
    case '0':
      return pop(), true;
    case '1':
      return pop_to_mark(), true;
    case '2':
      return stack_.push_back(top()), true;
    case 't':
      return push_tuple(pop_to_mark()), true;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<Id> items(static_cast<std::size_t>(code - 0x84));
      for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
      return push_tuple(std::move(items)), true;
    }
    case 'a': {
      const Id item = pop();
      return extend(Kind::kList, {item}), true;
    }
    case 'e':
      return extend(Kind::kList, pop_to_mark()), true;
    case 's': {
      const Id value = pop();
      const Id key = pop();
      return extend(Kind::kDict, {key, value}), true;
    }
    case 'u':
      return extend(Kind::kDict, pop_to_mark()), true;
    case 'q':
      return remember(number(1)), true;
    case 'r':
      return remember(number(4)), true;
    case 0x94:
      return remember(memo_.size()), true;
    case 'h':
      return recall(number(1)), true;
    case 'j':
      return recall(number(4)), true;
    default:
      return false;
  }
}

void Reader::refuse_opcode(unsigned char code) {
  std::string what = "instruction " + hex(code);
  for (const Opcode& other : kOthers) {
    if (other.code == code) what = other.name;
  }
  refuse(what + ": expected a pickle of protocol 2 to 5");
}

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, 11> kNames = {
      "None",     "True or False", "an integer",
      "a number", "a text",        "a list",
      "a tuple",  "a dictionary",  "an integer beyond 64 bits",
      "bytes",    "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Document::in_words(const Value& value) const {
  std::string words(name(value.kind));
  if (value.kind != Kind::kObject || value.items.empty()) return words;
  constexpr std::size_t kShown = 200;
  const auto text = [&](Id id) { return (*this)[id].text.substr(0, kShown); };
  return words + " of " + printable(text(value.items[0])) + "." + printable(text(value.items[1]));
}

const Value* Document::find(const Value& dict, std::string_view key) const {
  for (std::size_t i = dict.items.size(); i >= 2; i -= 2) {
    const Value& each = (*this)[dict.items[i - 2]];
    if (each.kind == Kind::kText && each.text == key) return &(*this)[dict.items[i - 1]];
  }
  return nullptr;
}

Document parse(std::string_view bytes, const std::string& file) {
  return Reader(bytes, file).read();
}

}  // namespace ferry::pickle
