#include "core/utf8.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Utf8Prefix, KeepsWhatFits) {
  EXPECT_EQ(utf8_prefix("", 0), "");
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("é", 2), "é");
}

TEST(Utf8Prefix, EndsWithAWholeCharacterAndLosesNoOther) {
  EXPECT_EQ(utf8_prefix("abcd", 3), "abc");
  EXPECT_EQ(utf8_prefix("ééé", 4), "éé");
  EXPECT_EQ(utf8_prefix("ééé", 5), "éé");
  EXPECT_EQ(utf8_prefix("a€b", 3), "a");
  EXPECT_EQ(utf8_prefix("a€b", 4), "a€");
  EXPECT_EQ(utf8_prefix("😀😀", 7), "😀");
  EXPECT_EQ(utf8_prefix("😀", 3), "");
}

TEST(Utf8Prefix, BoundsWhatIsNoUtf8Too) {
  for (std::size_t limit = 0; limit < 8; ++limit) {
    EXPECT_LE(utf8_prefix(std::string(8, '\x80'), limit).size(), limit);
    EXPECT_LE(utf8_prefix(std::string(8, '\xff'), limit).size(), limit);
  }
}

TEST(CleanText, ControlCharactersBecomeSpacesAndTheEndsAreTrimmed) {
  EXPECT_EQ(clean_text("  a\tb\r\nc\x7f\x1b[1m\n\n", 100), "a b  c  [1m");
  EXPECT_EQ(clean_text("a\xC2\x85"
                       "b\xE2\x80\xA8"
                       "c",
                       100),
            "a b c");
  EXPECT_EQ(clean_text("42 % \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x9A\x80", 100),
            "42 % \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x9A\x80");
}

TEST(CleanText, NothingTurnsTheTextAroundIt) {
  EXPECT_EQ(clean_text("a\xE2\x80\xAE"
                       "b\xE2\x81\xA6"
                       "c",
                       100),
            "a b c");
  // The marks of one character each do no harm.
  EXPECT_EQ(clean_text("a\xE2\x80\x8F"
                       "b",
                       100),
            "a\xE2\x80\x8F"
            "b");
}

TEST(CleanText, WhatIsNotUtf8IsReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  for (const std::string bytes : {"\xFF", "\xC3", "\x80", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80",
                                  "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"}) {
    const std::string clean = clean_text("a" + bytes + "b", 100);
    EXPECT_EQ(clean.find("a" + replaced), 0u);
    EXPECT_EQ(clean.back(), 'b');
  }
}

TEST(CleanText, ItIsCutBetweenTwoCharacters) {
  EXPECT_EQ(clean_text("abc\xE2\x82\xAC", 5), "abc");
  EXPECT_EQ(clean_text("abc\xE2\x82\xAC", 6), "abc\xE2\x82\xAC");
  EXPECT_EQ(clean_text(std::string(100000, '\n') + "x", 3), "x");
}

TEST(LastLines, TheLastWholeLinesAreKeptWithTheirIndentation) {
  EXPECT_EQ(last_lines("one\ntwo\n  three\n", 100), "one\ntwo\n  three");
  EXPECT_EQ(last_lines("one\ntwo\n  three\n", 16), "one\ntwo\n  three");
  EXPECT_EQ(last_lines("++one\ntwo\n  three\n", 16), "two\n  three");
  EXPECT_EQ(last_lines("\n \n\r\nlast\r\n\n", 100), "last");
  EXPECT_EQ(last_lines("first\n\nlast", 100), "first\n\nlast");
  EXPECT_EQ(last_lines("too long to stay\n\n\nlast line here", 17), "last line here");
  EXPECT_EQ(last_lines("", 100), "");
  EXPECT_EQ(last_lines("\n\n", 100), "");
}

TEST(LastLines, OfALineThatIsTooLongItsEndIsKept) {
  const std::string line = std::string(100, 'x') + "the end";
  EXPECT_EQ(last_lines("before\n" + line + "\n", 16), "...xxxxxxthe end");
  // Between two characters.
  EXPECT_EQ(last_lines(std::string(20, 'x') + "\xE2\x82\xAC" + std::string(11, 'y'), 16),
            "..." + std::string(11, 'y'));
}

TEST(LastLines, WhatCouldHarmATerminalIsGone) {
  EXPECT_EQ(last_lines("a\x1b[31m\tb\rc\nd\xC2\x9b"
                       "e\xE2\x80\xAE"
                       "f\xFF",
                       100),
            "a [31m b c\nd e f\xEF\xBF\xBD");
}

TEST(EscapeControls, ReadsBackAsTheSameJson) {
  EXPECT_EQ(escape_controls("{\n\"k\": \"a\xC2\x9b"
                            "2Jü\xE2\x80\xAE\x7F\"}\n"),
            "{\n\"k\": \"a\\u009b2Jü\\u202e\\u007f\"}\n");
  EXPECT_EQ(escape_controls("\xFF"), "\xFF") << "no character, which dump() has replaced before";
}

TEST(LastLines, TheyAreBoundedAndUtf8WhateverComes) {
  unsigned random = 7;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      random = random * 1664525U + 1013904223U;
      const unsigned pick = random >> 24U;
      text += pick < 24 ? '\n' : static_cast<char>(pick);
    }
    for (const std::size_t limit : {16U, 40U, 150U, 1000U}) {
      const std::string lines = last_lines(text, limit);
      EXPECT_LE(lines.size(), limit);
      EXPECT_TRUE(is_utf8(lines));
      EXPECT_EQ(lines.find_first_of("\r\t\x1b"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace holdfast
