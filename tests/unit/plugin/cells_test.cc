#include "plugin/terminal/cells.h"

#include <gtest/gtest.h>

namespace holdfast::plugin {
namespace {

TEST(PluginCells, WideCharactersTakeTwoAndMarksNone) {
  EXPECT_EQ(cells("attempt"), 7U);
  EXPECT_EQ(cells("├──┤"), 4U);
  EXPECT_EQ(cells("夜間"), 4U);
  EXPECT_EQ(cells("e\u0301"), 1U);
  EXPECT_EQ(cells("\xff"), 1U);
}

TEST(PluginCells, ACutTextEndsWithAnEllipsis) {
  EXPECT_EQ(cut("attempt", 7, true), "attempt");
  EXPECT_EQ(cut("attempt", 5, true), "atte…");
  EXPECT_EQ(cut("├──┤", 4, true), "├──┤");  // twelve bytes
  EXPECT_EQ(cut("attempt", 5, false), "atte~");
  // Half of a wide character does not fit.
  EXPECT_EQ(cut("夜間作業", 4, true), "夜…");
  EXPECT_EQ(fit("夜間", 6, true), "夜間  ");
}

TEST(PluginCells, TextIsBrokenBetweenWords) {
  EXPECT_EQ(wrap("no node fits the pod", 10, 5, true),
            (std::vector<std::string>{"no node", "fits the", "pod"}));
  EXPECT_EQ(wrap("registry.example.com/thumbs", 10, 5, true),
            (std::vector<std::string>{"registry.e", "xample.com", "/thumbs"}));
  EXPECT_EQ(wrap("one two three", 5, 2, true), (std::vector<std::string>{"one", "two …"}));
  EXPECT_EQ(wrap("", 5, 2, true), (std::vector<std::string>{}));
}

TEST(PluginCells, ACommandStaysOneCommandWhenItIsBroken) {
  EXPECT_EQ(wrap_command("kubectl patch dj a -p '{\"a b\":1}'", 20),
            (std::vector<std::string>{"kubectl patch dj a \\", "  -p '{\"a b\":1}'"}));
}

TEST(PluginCells, AWordForAShellIsQuotedIfItHasTo) {
  EXPECT_EQ(shell_word("film-17"), "film-17");
  EXPECT_EQ(shell_word("a; rm -rf /"), "'a; rm -rf /'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace holdfast::plugin
