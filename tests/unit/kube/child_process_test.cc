#include "client/kube/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/file_reader.h"
#include "tests/unit/kube/temporary_folder.h"

namespace holdfast::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  Result<std::string> run_script(const std::string& body) {
    run_.command = folder_.write_script("program", body);
    return run_program(run_, stop_);
  }

  // Whether the process is there and not only waits to be collected by its parent.
  static bool is_running(const std::string& pid) {
    const Result<std::string> status = system_files().read("/proc/" + pid + "/stat", 4096);
    return status.ok() && status->find(") Z") == std::string::npos;
  }

  // SIGKILL is on its way when run_program returns; the kernel still has to end the process.
  static bool ends_within(const std::string& pid, seconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (is_running(pid)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  test::TemporaryFolder folder_;
  StopEvent stop_;
  ProgramRun run_;
};

TEST_F(ChildProcessTest, TheOutputIsHandedBackWhole) {
  const Result<std::string> output =
      run_script("i=0; while [ $i -lt 20000 ]; do echo line; i=$((i+1)); done");
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_EQ(output->size(), 100'000U);
}

// The process group of a program that writes it.
constexpr const char* kOwnGroup = "cut -d ' ' -f 5 /proc/self/stat";

TEST_F(ChildProcessTest, WithoutAPersonAProgramHasAGroupOfItsOwn) {
  const Result<std::string> group = run_script(kOwnGroup);
  ASSERT_TRUE(group.ok());
  EXPECT_NE(std::stoi(*group), ::getpgrp());
}

TEST_F(ChildProcessTest, WithAPersonItIsInOurGroupWhichMayUseTheTerminal) {
  for (const Person person : {Person::kReader, Person::kAnswers}) {
    run_.person = person;
    const Result<std::string> group = run_script(kOwnGroup);
    ASSERT_TRUE(group.ok());
    EXPECT_EQ(std::stoi(*group), ::getpgrp());
  }
}

TEST_F(ChildProcessTest, OnlyAPersonWhoAnswersGivesItOurStandardInput) {
  const auto input = [this](Person person) {
    run_.person = person;
    const Result<std::string> path = run_script("readlink /proc/self/fd/0");
    return path.ok() ? *path : path.error().message;
  };
  EXPECT_EQ(input(Person::kNobody), "/dev/null\n");
  EXPECT_EQ(input(Person::kReader), "/dev/null\n");
  const std::string ours = std::filesystem::read_symlink("/proc/self/fd/0");
  EXPECT_EQ(input(Person::kAnswers), ours + "\n");
}

TEST_F(ChildProcessTest, AProgramWithoutALimitIsStillStopped) {
  run_.limit.reset();
  run_.person = Person::kReader;
  std::thread other([this] { stop_.set(); });
  const Result<std::string> output = run_script("exec sleep 1000");
  other.join();
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kCancelled);
}

TEST_F(ChildProcessTest, ArgumentsReachTheProgramWithoutAShell) {
  run_.arguments = {"$(id)", "a b", ""};
  const Result<std::string> output = run_script("printf '[%s]' \"$@\"");
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "[$(id)][a b][]");
}

TEST_F(ChildProcessTest, ItsEnvironmentIsOursWithWhatIsAdded) {
  run_.environment = {{"HOLDFAST_A", "1"}, {"HOME", "/elsewhere"}};
  const Result<std::string> output =
      run_script("printf '%s %s %s' $HOLDFAST_A $HOME \"${PATH:+p}\"");
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "1 /elsewhere p");
}

TEST_F(ChildProcessTest, ItsInputIsEmptyAndItInheritsNoDescriptor) {
  // Far above what a shell opens by itself, and not close-on-exec.
  const int leaked = ::fcntl(STDIN_FILENO, F_DUPFD, 200);
  ASSERT_GE(leaked, 200);
  run_.arguments = {std::to_string(leaked)};
  const Result<std::string> output =
      run_script("cat; if test -e /proc/self/fd/$1; then echo leaked; else echo closed; fi");
  ::close(leaked);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "closed\n");
}

TEST_F(ChildProcessTest, AProgramIsLookedForInPath) {
  run_.command = "true";
  EXPECT_TRUE(run_program(run_, stop_).ok());
}

TEST_F(ChildProcessTest, AMissingProgramIsNotFound) {
  for (const char* const command : {"holdfast-no-such-program", "/no/such/program"}) {
    run_.command = command;
    const Result<std::string> output = run_program(run_, stop_);
    ASSERT_FALSE(output.ok());
    EXPECT_EQ(output.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(output.error().message, HasSubstr(command));
  }
}

TEST_F(ChildProcessTest, AnExitCodeIsAnErrorThatDoesNotShowTheOutput) {
  const Result<std::string> output = run_script("echo hunter2; exit 7");
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("ended with exit code 7"));
  EXPECT_THAT(output.error().message, testing::Not(HasSubstr("hunter2")));
}

TEST_F(ChildProcessTest, ASignalIsAnError) {
  const Result<std::string> output = run_script("kill -TERM $$");
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("signal 15"));
}

TEST_F(ChildProcessTest, TooMuchOutputIsCutOff) {
  run_.max_output_bytes = 100'000;
  run_.command = "yes";
  const Result<std::string> output = run_program(run_, stop_);
  ASSERT_FALSE(output.ok());
  EXPECT_THAT(output.error().message, HasSubstr("wrote more than 100000 bytes"));
}

TEST_F(ChildProcessTest, WhatTakesTooLongIsKilledWithItsChildren) {
  run_.limit = milliseconds(300);
  const Result<std::string> output =
      run_script("sleep 1000 & echo $! > " + folder_.path() + "/child; sleep 1000");
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kTransient);
  EXPECT_THAT(output.error().message, HasSubstr("did not end within"));
  std::string child = folder_.read("child");
  ASSERT_FALSE(child.empty());
  child.pop_back();
  EXPECT_TRUE(ends_within(child, seconds(10)));
}

TEST_F(ChildProcessTest, AStopKillsItFromAnotherThread) {
  std::thread stopper([this] { stop_.set(); });
  const Result<std::string> output = run_script("exec sleep 1000");
  stopper.join();
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kCancelled);
}

TEST_F(ChildProcessTest, AChildThatKeepsTheOutputOpenIsNotWaitedFor) {
  const Result<std::string> output =
      run_script("sleep 1000 & echo $! > " + folder_.path() + "/child; printf done");
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_EQ(*output, "done");
  ::kill(std::stoi(folder_.read("child")), SIGKILL);
}

TEST_F(ChildProcessTest, OurBlockedAndIgnoredSignalsAreNotPassedOn) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const Result<std::string> output = run_script("grep SigBlk /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "SigBlk:\t0000000000000000\n");
}

TEST(SystemFiles, APipeInPlaceOfAFileDoesNotBlock) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(system_files().read(path, 100).error().code, ErrorCode::kInvalid);
}

TEST(SystemFiles, ErrorsSayWhatTheCallerMayDo) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(system_files().read(folder.path() + "/none", 100).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(system_files().read(folder.path(), 100).error().code, ErrorCode::kInvalid);
  const std::string file = folder.write("file", "12345");
  EXPECT_EQ(*system_files().read(file, 5), "12345");
  EXPECT_EQ(system_files().read(file, 4).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace holdfast::kube
