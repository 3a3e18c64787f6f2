#include "formats/pickle.h"

#include <array>
#include <bit>
#include <cstddef>

#include "formats/error.h"
#include "formats/printable.h"

namespace ferry::pickle {
namespace {

constexpr std::size_t kValuesMost = std::size_t{1} << 25;
constexpr std::size_t kDepthMost = 100;  // of marks: lists, tuples and dictionaries in the making
constexpr Id kMark{0xffff'ffff};

struct Opcode {
  unsigned char code;
  std::string_view name;
};

// Those that this reader does not have.
constexpr Opcode kOthers[] = {
    {'0', "POP"},         {'1', "POP_MARK"},     {'2', "DUP"},
    {'F', "FLOAT"},       {'I', "INT"},          {'L', "LONG"},
    {'S', "STRING"},      {'T', "BINSTRING"},    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},     {'B', "BINBYTES"},     {'C', "SHORT_BINBYTES"},
    {'P', "PERSID"},      {'Q', "BINPERSID"},    {'R', "REDUCE"},
    {'b', "BUILD"},       {'c', "GLOBAL"},       {'d', "DICT"},
    {'g', "GET"},         {'i', "INST"},         {'l', "LIST"},
    {'o', "OBJ"},         {'p', "PUT"},          {0x81, "NEWOBJ"},
    {0x82, "EXT1"},       {0x83, "EXT2"},        {0x84, "EXT4"},
    {0x8e, "BINBYTES8"},  {0x8f, "EMPTY_SET"},   {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},  {0x92, "NEWOBJ_EX"},   {0x93, "STACK_GLOBAL"},
    {0x96, "BYTEARRAY8"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
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
  void push_text(std::uint64_t length) {
    stack_.push_back(add({.kind = Kind::kText, .text = take(length), .items = {}}));
  }

  // The latest value, not a mark; it goes, or stays.
  Id top() const {
    if (stack_.empty() || stack_.back() == kMark) refuse("a value is missing");
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  // What stands above the latest mark, which goes.
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
    if (into.kind != kind) {
      refuse("expected " + std::string(name(kind)) + ", found " + std::string(name(into.kind)));
    }
    if (kind == Kind::kDict && items.size() % 2 != 0) refuse("a key without a value");
    into.items.insert(into.items.end(), items.begin(), items.end());
  }

  void remember(std::uint64_t place) {
    // Python counts them.
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

  void push_long(std::uint64_t bytes) {
    if (bytes > 8) refuse("a number of " + std::to_string(bytes) + " bytes: expected at most 8");
    const auto size = static_cast<std::size_t>(bytes);
    std::uint64_t value = number(size);
    const bool negative = size > 0 && size < 8 && (value >> (8 * size - 1)) != 0;
    if (negative) value |= ~std::uint64_t{0} << (8 * size);
    push(Kind::kInteger, static_cast<std::int64_t>(value));
  }
  void push_float() {
    std::uint64_t bits = 0;  // big-endian, as no other number is
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    stack_.push_back(
        add({.kind = Kind::kFloat, .real = std::bit_cast<double>(bits), .text = {}, .items = {}}));
  }

  void step(unsigned char code);
  bool step_stack(unsigned char code);
  bool step_value(unsigned char code);
  [[noreturn]] void refuse_opcode(unsigned char code);

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the instruction
  bool stopped_ = false;
  std::size_t marks_ = 0;
  std::vector<Id> stack_;
  std::vector<Id> memo_;
  Document document_;
};

void Reader::step(unsigned char code) {
  if (begin_ == 0 && code != 0x80) refuse("expected a pickle (of protocol 2 or later)");
  if (step_value(code) || step_stack(code)) return;
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

// Instructions that move values.
bool Reader::step_stack(unsigned char code) {
  switch (code) {
    case 0x80:
      if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5) {
        refuse("protocol " + std::to_string(protocol) + ": expected 2 to 5");
      }
      return true;
    case 0x95:
      return number(8), true;  // a frame: of no meaning where all bytes are there
    case '.':
      if (stack_.size() != 1 || marks_ != 0) refuse("expected one value at the end");
      document_.root_ = top();
      return stopped_ = true;
    case '(':
      if (++marks_ > kDepthMost) refuse("nested deeper than " + std::to_string(kDepthMost));
      return stack_.push_back(kMark), true;
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
  std::string called;
  if (code == 'c' || code == 'i') {  // two lines follow: a module and a name
    const std::string_view rest = bytes_.substr(at_, 300);
    const std::size_t first = rest.find('\n');
    const std::size_t second = first == rest.npos ? first : rest.find('\n', first + 1);
    if (second != rest.npos) {
      called = std::string(rest.substr(0, first)) + "." +
               std::string(rest.substr(first + 1, second - first - 1));
    }
  }
  if (code == 0x93 && stack_.size() >= 2 && stack_.back() != kMark &&
      stack_[stack_.size() - 2] != kMark) {
    called = std::string(document_[stack_[stack_.size() - 2]].text) + "." +
             std::string(document_[stack_.back()].text);
  }
  if (!called.empty()) what += " of " + printable(called.substr(0, 200));
  refuse(what + ": expected numbers, texts, lists, tuples and dictionaries alone");
}

std::string_view name(Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"None",     "True or False", "an integer",
                                                      "a number", "a text",        "a list",
                                                      "a tuple",  "a dictionary"};
  return kNames[static_cast<std::size_t>(kind)];
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
