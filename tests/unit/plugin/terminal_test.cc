// What fits on a terminal's line.
#include <gtest/gtest.h>

#include "plugin/terminal.h"

namespace holdfast::plugin {
namespace {

TEST(PluginTerminal, ColumnsAreCodePointsWithoutColours) {
  EXPECT_EQ(columns_of("attempt"), 7);
  EXPECT_EQ(columns_of("├──┤"), 4);
  EXPECT_EQ(columns_of("\x1b[31mlost\x1b[0m"), 4);
}

TEST(PluginTerminal, ACutLineKeepsItsColoursAndEndsThem) {
  EXPECT_EQ(cut_to("attempt", 3), "att");
  EXPECT_EQ(cut_to("├──┤", 2), "├─");
  EXPECT_EQ(cut_to("\x1b[31mlost\x1b[0m!", 2), "\x1b[31mlo\x1b[0m");
  EXPECT_EQ(cut_to("ok", 2), "ok");
}

}  // namespace
}  // namespace holdfast::plugin
