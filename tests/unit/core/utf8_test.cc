#include "operator/core/utf8.h"

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

}  // namespace
}  // namespace holdfast
