#include "formats/pickle.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/error.h"
#include "formats/pickle_write.h"

namespace ferry::pickle {
namespace {

using namespace std::string_literals;

std::string refusal(const std::string& bytes) {
  try {
    parse(bytes, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

// In Python, {"a": [1, -2, 300, 70000, 2**40, -2**40, True, None], "b": (1.5, "a", ())}.
const std::string kProtocol2 =
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00"
    "\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x88NeX\x01\x00\x00\x00"
    "bq\x03G?\xf8\x00\x00\x00\x00\x00\x00h\x01)\x87q\x04u."s;
const std::string kProtocol4 =
    "\x80\x04\x95:\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
    "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01J"
    "p\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff\x88Ne\x8c\x01"
    "b\x94G?\xf8\x00\x00\x00\x00\x00\x00h\x01)\x87\x94u."s;

TEST(Pickle, PlainDataOfEveryProtocolIsRead) {
  for (const std::string& bytes : {kProtocol2, kProtocol4}) {
    const Document document = parse(bytes, "file");
    ASSERT_EQ(document.root().kind, Kind::kDict);
    const Value* a = document.find(document.root(), "a");
    ASSERT_EQ(a->items.size(), 8u);
    const std::int64_t integers[] = {
        1, -2, 300, 70000, std::int64_t{1} << 40, -(std::int64_t{1} << 40), 1};
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(document[a->items[i]].integer, integers[i]);
    EXPECT_EQ(document[a->items[6]].kind, Kind::kBool);
    EXPECT_EQ(document[a->items[7]].kind, Kind::kNone);
    const Value* b = document.find(document.root(), "b");
    ASSERT_EQ(b->kind, Kind::kTuple);
    EXPECT_EQ(document[b->items[0]].real, 1.5);
    EXPECT_EQ(document[b->items[1]].text, "a");
    EXPECT_TRUE(document[b->items[2]].items.empty());
    EXPECT_EQ(document.find(document.root(), "c"), nullptr);
  }
}

TEST(Pickle, WhatIsWrittenIsRead) {
  Writer writer;
  writer.begin_list();
  for (const std::int64_t value : {std::int64_t{0}, INT64_MIN, INT64_MAX, std::int64_t{-5}}) {
    writer.integer(value);
  }
  writer.text("twice");
  writer.text("twice");
  writer.real(-0.25);
  writer.begin_dict();
  writer.end_dict();
  writer.none();
  writer.boolean(false);
  writer.end_list();
  const std::string bytes = writer.finish();
  const Document document = parse(bytes, "file");
  const auto& items = document.root().items;
  ASSERT_EQ(items.size(), 10u);
  EXPECT_EQ(document[items[1]].integer, INT64_MIN);
  EXPECT_EQ(document[items[2]].integer, INT64_MAX);
  EXPECT_EQ(document[items[3]].integer, -5);
  EXPECT_EQ(items[4], items[5]);
  EXPECT_EQ(document[items[6]].real, -0.25);
  EXPECT_EQ(document[items[7]].kind, Kind::kDict);
}

// pickle.dumps(os.system) and the like: the name of what Python would make, and nothing made.
TEST(Pickle, WhatWouldCallIsAnObjectOfThatName) {
  const auto root = [](const std::string& bytes) {
    const Document document = parse(bytes, "file");
    return document.in_words(document.root());
  };
  EXPECT_EQ(root("\x80\x02"
                 "cposix\nsystem\nq\x00."s),
            "an object of posix.system");
  const std::string system = "\x8c\x05posix\x94\x8c\x06system\x94\x93\x94"s;
  EXPECT_EQ(root("\x80\x04" + system + "."), "an object of posix.system");
  const std::string called = system + "\x8c\x02ls\x85R";
  EXPECT_EQ(root("\x80\x04" + called + "."), "an object of posix.system");
  EXPECT_EQ(root("\x80\x04" + called + "}b."), "an object of posix.system") << "with a state";
  EXPECT_EQ(root("\x80\x04" + system + ")\x81."), "an object of posix.system");
  EXPECT_EQ(root("\x80\x04" + system + ")}\x92."), "an object of posix.system");
  EXPECT_EQ(root("\x80\x04" + called + "(K\x01K\x02u."), "an object of posix.system")
      << "with items, as an OrderedDict has";
  EXPECT_EQ(root("\x80\x02N)R."s), "an object");
  EXPECT_EQ(root("\x80\x04\x8f(K\x01K\x02\x90."s), "an object") << "a set";
  EXPECT_EQ(root("\x80\x04(K\x01\x91."s), "an object") << "a frozen one";
  EXPECT_EQ(root("\x80\x04"
                 "C\x02\xff\x00."s),
            "bytes");
  const std::string deep(5000, ']');
  EXPECT_EQ(root("\x80\x04" + deep + std::string(4999, 'a') + "."), "a list");
}

TEST(Pickle, IntegersAreOfAnySize) {
  const auto root = [](const std::string& bytes) {
    return parse("\x80\x02" + bytes + ".", "file").root();
  };
  EXPECT_EQ(root("\x8a\x09"s + std::string(9, '\1')).kind, Kind::kBig);
  EXPECT_EQ(root("\x8b\x00\x01\x00\x00"s + std::string(256, '\1')).kind, Kind::kBig);
  const Value minus = root("\x8a\x0a"s + std::string(10, '\xff'));
  EXPECT_EQ(minus.kind, Kind::kInteger) << "10 bytes say no more than 8";
  EXPECT_EQ(minus.integer, -1);
  EXPECT_EQ(root("\x8a\x09\x01"s + std::string(8, '\0')).integer, 1);
  EXPECT_EQ(root("\x8a\x09"s + std::string(8, '\xff') + '\0').kind, Kind::kBig) << "2^64 - 1";
}

TEST(Pickle, WhatIsNoPickleIsRefused) {
  const struct {
    std::string bytes;
    const char* refusal;
  } cases[] = {
      {"", "byte 0: the pickle ends in the middle"},
      {"{}", "byte 0: expected a pickle (of protocol 2 or later)"},
      {"\x80\x01N."s, "byte 0: protocol 1: expected 2 to 5"},
      {"\x80\x02N"s, "byte 3: the pickle ends in the middle"},
      {"\x80\x02."s, "byte 2: expected one value at the end"},
      {"\x80\x02NN."s, "byte 4: expected one value at the end"},
      {"\x80\x02X\xff\xff\xff\xff"
       "a."s,
       "byte 2: the pickle ends in the middle"},
      {"\x80\x02](e"s, "byte 5: the pickle ends in the middle"},
      {"\x80\x02]e."s, "byte 3: a mark is missing"},
      {"\x80\x02}(Nu."s, "byte 5: a key without a value"},
      {"\x80\x02}Na."s, "byte 4: expected a list, found a dictionary"},
      {"\x80\x02h\x00."s, "byte 2: value number 0 was not remembered"},
      {"\x80\x02Nr\x05\x00\x00\x00."s, "byte 3: expected to remember value number 0"},
      {"\x80\x02\x8a\x09\x01."s, "byte 2: the pickle ends in the middle"},
      {"\x80\x02\xff."s, "byte 2: instruction 0xff: expected a pickle of protocol 2 to 5"},
      {"\x80\x02I1\n."s, "byte 2: INT: expected a pickle of protocol 2 to 5"},
      {"\x80\x02NR."s, "byte 3: a value is missing"},
      {"\x80\x02"
       "cposix\nsystem"s,
       "byte 2: the pickle ends in the middle"},
      {"\x80\x02"s + std::string(10'001, '('), "byte 10002: nested deeper than 10000"},
      {"\x80\x02\x87."s, "byte 2: a value is missing"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(refusal(each.bytes), std::string("file: ") + each.refusal);
}

// A list that is in itself.
TEST(Pickle, ACircleIsNoTrouble) {
  const std::string bytes =
      "\x80\x02]q\x00h\x00"
      "a."s;
  const Document document = parse(bytes, "file");
  ASSERT_EQ(document.root().items.size(), 1u);
  EXPECT_EQ(&document[document.root().items[0]], &document.root());
}

}  // namespace
}  // namespace ferry::pickle
