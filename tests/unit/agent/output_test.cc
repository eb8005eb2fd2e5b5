// What commands write, line by line.
#include "agent/serve/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

TEST(LinePrefixerRule, EachLineHasThePrefixHoweverItComes) {
  LinePrefixer lines("[a 1] ");
  EXPECT_EQ(lines.add("one\ntw"), "[a 1] one\n");
  EXPECT_EQ(lines.add("o"), "");
  EXPECT_EQ(lines.add("\n\nthree"), "[a 1] two\n[a 1] \n");
  EXPECT_EQ(lines.finish(), "[a 1] three\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(LinePrefixerRule, ALongLineIsCut) {
  LinePrefixer lines("> ");
  const std::string longest(kMaxLineBytes, 'x');
  EXPECT_EQ(lines.add(longest), "");
  EXPECT_EQ(lines.add("\n"), "> " + longest + "\n");
  EXPECT_EQ(lines.add(longest + "yz\n"), "> " + longest + "\n> yz\n");
  EXPECT_EQ(lines.add(longest + longest + longest), "> " + longest + "\n> " + longest + "\n");
  EXPECT_EQ(lines.finish(), "> " + longest + "\n");
}

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int one : ends) ::close(one);
  }
  std::string read() const {
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), 4096))));
    return text;
  }
  std::array<int, 2> ends{};
};

void write_to(int end, const std::string& text) {
  ASSERT_EQ(::write(end, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(OutputRule, WhatSeveralCommandsWriteIsCopiedUntilTheyClose) {
  const Pipe log;
  Output output(log.ends[1]);
  const int one = output.open("[one 1] ");
  const int two = output.open("[two 1] ");
  write_to(one, "a\nend");
  ::close(one);
  write_to(two, "b\n");
  ::close(two);
  output.finish(seconds(30));
  const std::string text = log.read();
  for (const char* const line : {"[one 1] a\n", "[one 1] end\n", "[two 1] b\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  EXPECT_LT(text.find("a\n"), text.find("end\n"));
}

TEST(OutputRule, TheLastLinesOfACommandAreKept) {
  const Pipe log;
  Output output(log.ends[1]);
  Output errors(log.ends[1]);
  const auto tail = std::make_shared<Tail>(2);
  const int out = output.open("[one 1] ", tail);
  const int err = errors.open("[one 1] ", tail);
  write_to(out, "first\n");
  ::close(out);
  output.finish(seconds(30));
  write_to(err, "no input\x1b[m\nlast");
  ::close(err);
  EXPECT_EQ(tail->lines(1024, seconds(30)), "first\nno input [m\nlast");
  EXPECT_EQ(tail->lines(16, seconds(30)), "no input [m\nlast");
}

TEST(TailRule, ItIsBoundedAndWaitsForNoOpenPipe) {
  Tail tail(2);
  for (int i = 0; i < 100'000; ++i) tail.add("line " + std::to_string(i) + "\n");
  const SteadyTime began = steady_now();
  const std::string lines = tail.lines(1024, std::chrono::milliseconds(10));
  EXPECT_LT(steady_now() - began, seconds(10));
  EXPECT_LE(lines.size(), 1024U);
  EXPECT_TRUE(lines.ends_with("\nline 99998\nline 99999"));
}

TEST(OutputRule, NobodyWaitsForALogThatNobodyReads) {
  static Pipe& log = *new Pipe;  // the thread that hangs outlives the test, and the statics
  ASSERT_EQ(::fcntl(log.ends[1], F_SETPIPE_SZ, 4096), 4096);
  const SteadyTime began = steady_now();
  {
    Output output(log.ends[1]);
    const int end = output.open("");
    write_to(end, std::string(60000, 'x') + "\n");
    ::close(end);
    output.finish(std::chrono::milliseconds(50));
  }
  EXPECT_LT(steady_now() - began, seconds(20));
}

}  // namespace
}  // namespace holdfast::agent
