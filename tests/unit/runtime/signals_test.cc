#include "operator/runtime/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <future>

namespace holdfast::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The tests run in children of their own: signals and _exit() are the process's.
class StopSignalsTest : public testing::Test {
 protected:
  StopSignalsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

constexpr Duration kLong = seconds(60);

[[noreturn]] void wait_for_ever() {
  while (true) pause();
}

std::string first_of(int signal) {
  block_stop_signals();
  std::promise<std::string> name;
  auto got = name.get_future();
  StopSignals signals([&](const std::string& text) { name.set_value(text); }, kLong, Log());
  kill(getpid(), signal);
  return got.get();
}

TEST_F(StopSignalsTest, TheFirstSignalAsksForAStop) {
  EXPECT_EXIT(_exit(first_of(SIGTERM) == "SIGTERM" ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(first_of(SIGINT) == "SIGINT" ? 0 : 1), testing::ExitedWithCode(0), "");
}

void two_signals() {
  block_stop_signals();
  StopSignals signals([](const std::string&) { kill(getpid(), SIGINT); }, kLong,
                      Log::create(LogLevel::kInfo, LogFormat::kText));
  kill(getpid(), SIGTERM);
  wait_for_ever();
}

TEST_F(StopSignalsTest, TheSecondSignalEndsTheProcessAtOnce) {
  EXPECT_EXIT(two_signals(), testing::ExitedWithCode(kExitCutShort), "a second signal, SIGINT");
}

void stop_that_hangs() {
  block_stop_signals();
  StopSignals signals([](const std::string&) {}, milliseconds(20),
                      Log::create(LogLevel::kInfo, LogFormat::kText));
  kill(getpid(), SIGTERM);
  wait_for_ever();
}

TEST_F(StopSignalsTest, AStopThatTakesTooLongIsCutShort) {
  EXPECT_EXIT(stop_that_hangs(), testing::ExitedWithCode(kExitCutShort), "the stop took over");
}

void stop_for_another_reason() {
  block_stop_signals();
  StopSignals signals([](const std::string&) {}, milliseconds(20),
                      Log::create(LogLevel::kInfo, LogFormat::kText));
  signals.stop_has_begun();
  wait_for_ever();
}

TEST_F(StopSignalsTest, AStopThatBeganByItselfHasTheSameLimit) {
  EXPECT_EXIT(stop_for_another_reason(), testing::ExitedWithCode(kExitCutShort),
              "the stop took over");
}

void pipe_that_nobody_reads() {
  block_stop_signals();
  raise(SIGPIPE);
  _exit(0);
}

TEST_F(StopSignalsTest, ABrokenPipeEndsNothing) {
  EXPECT_EXIT(pipe_that_nobody_reads(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace holdfast::runtime
