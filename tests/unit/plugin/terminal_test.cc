// What fits on a terminal's line, and what a real terminal does with what a verb writes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "plugin/terminal/std_terminal.h"
#include "plugin/verbs/verb.h"

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

// A descriptor that the test closes.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) { EXPECT_GE(number, 0); }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int operator*() const { return number_; }

  // All that was written to a file.
  std::string text() const {
    std::string all(4096, ' ');
    const ssize_t got = ::pread(number_, all.data(), all.size(), 0);
    all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return all;
  }

 private:
  const int number_;
};

int new_file() { return ::open("/tmp", O_TMPFILE | O_RDWR, 0600); }

TEST(PluginStdTerminal, AnErrorIsOnTheScreenThatStays) {
  // Both are one terminal.
  const Descriptor screen(new_file());
  {
    StdTerminal terminal(*screen, *screen);
    terminal.show({"film-17  Backoff"});
    EXPECT_EQ(refuse(terminal, {}, "there is no DurableJob film-17"), kExitRefused);
  }
  const std::string text = screen.text();
  const std::size_t left = text.find("\x1b[?1049l");
  ASSERT_NE(left, std::string::npos);
  EXPECT_LT(left, text.find("there is no DurableJob film-17"));
  EXPECT_EQ(text.find("\x1b[?1049l", left + 1), std::string::npos) << "it is left once";
}

TEST(PluginStdTerminal, WhatCannotBeWrittenIsAnErrorAndSaysWhy) {
  const Descriptor full(::open("/dev/full", O_WRONLY));
  const Descriptor errors(new_file());
  StdTerminal terminal(*full, *errors);
  terminal.out("kind: DurableJob\n");
  EXPECT_FALSE(terminal.wait(Duration::zero())) << "a page that nobody gets need not go on";
  EXPECT_EQ(finish(terminal, kExitDone), kExitRefused);
  EXPECT_THAT(errors.text(), testing::HasSubstr("cannot write to standard output: No space left"));
  EXPECT_EQ(finish(terminal, kExitJobFailed), kExitJobFailed) << "the job's outcome is worth more";
}

TEST(PluginStdTerminal, AReaderThatIsGoneEndsItWithoutAWord) {
  std::signal(SIGPIPE, SIG_IGN);  // as some parents leave it to their children
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const Descriptor pipe(ends[1]);
  const Descriptor errors(new_file());
  StdTerminal terminal(*pipe, *errors);
  terminal.out("NAME PHASE\n");
  EXPECT_FALSE(terminal.wait(Duration::zero()));
  EXPECT_EQ(finish(terminal, kExitDone), kExitDone);
  EXPECT_EQ(errors.text(), "");
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace holdfast::plugin
