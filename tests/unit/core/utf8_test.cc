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

}  // namespace
}  // namespace holdfast
