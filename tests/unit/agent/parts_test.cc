// The small parts: files, progress, the state that `check` reads, the child, a start of a slot that
// fails.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "agent/base/checkpoint.h"
#include "agent/base/files.h"
#include "agent/base/progress.h"
#include "agent/base/state_file.h"
#include "agent/serve/slot_runner.h"
#include "core/steady_now.h"
#include "tests/unit/kube/temporary_folder.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

TEST(ProgressFileRule, TouchingWritingAndReplacingAreProgress) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/progress";
  ProgressFile file(path);
  EXPECT_EQ(file.look(), std::nullopt);
  ASSERT_TRUE(report_progress(path, "one").ok());
  EXPECT_EQ(file.look(), "one");
  EXPECT_EQ(file.look(), std::nullopt);
  const utimbuf past = {1000, 1000};
  ASSERT_EQ(::utime(path.c_str(), &past), 0);
  EXPECT_EQ(file.look(), "one");
  folder.write("progress", "two words\nand more\n");
  EXPECT_EQ(file.look(), "two words and more");
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_EQ(file.look(), std::nullopt);
  folder.write("progress", "");
  EXPECT_EQ(file.look(), "");
}

TEST(ProgressFileRule, WhatIsThereAtTheStartIsNone) {
  const test::TemporaryFolder folder;
  ProgressFile file(folder.write("progress", "old"));
  EXPECT_EQ(file.look(), std::nullopt);
}

TEST(ProgressFileRule, AMessageIsBoundedAndAPipeIsNotWaitedFor) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/progress";
  ProgressFile file(path);
  EXPECT_EQ(file.look(), std::nullopt);
  folder.write("progress", std::string(100000, 'x'));
  EXPECT_EQ(file.look(), std::string(256, 'x'));
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(file.look(), std::nullopt);
}

TEST(ProgressFileRule, ALinkIsNotFollowed) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/progress";
  const std::string secret = folder.write("secret", "secret");
  ProgressFile file(path);
  EXPECT_EQ(file.look(), std::nullopt);
  ASSERT_EQ(::symlink(secret.c_str(), path.c_str()), 0);
  EXPECT_EQ(file.look(), std::nullopt);
  ASSERT_TRUE(report_progress(path, "on").ok());
  EXPECT_EQ(file.look(), "on");
  EXPECT_EQ(folder.read("secret"), "secret");
}

TEST(ReplaceFileRule, TheModeIsAsAskedAndNothingElseIsLeft) {
  const test::TemporaryFolder folder;
  const mode_t before = ::umask(077);
  ASSERT_TRUE(replace_file(folder.path() + "/file", "text", 0644).ok());
  ASSERT_TRUE(install_self(folder.path()).ok());
  ::umask(before);
  struct stat file = {};
  struct stat self = {};
  ASSERT_EQ(::stat((folder.path() + "/file").c_str(), &file), 0);
  ASSERT_EQ(::stat((folder.path() + "/agent").c_str(), &self), 0);
  EXPECT_EQ(file.st_mode & 07777u, 0644u);
  EXPECT_EQ(self.st_mode & 07777u, 0755u);
  EXPECT_EQ(folder.read("file"), "text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

// The child may have made what it likes under the name that the new file has first.
TEST(ReplaceFileRule, WhatStandsInItsWayIsRemovedAndNeitherFollowedNorWaitedFor) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string scratch = path + "." + std::to_string(::getpid());
  const std::string other = folder.write("other", "other");
  ASSERT_EQ(::mkfifo(scratch.c_str(), 0600), 0);
  EXPECT_TRUE(replace_file(path, "one", 0644).ok());
  ASSERT_EQ(::symlink(other.c_str(), scratch.c_str()), 0);
  EXPECT_TRUE(replace_file(path, "two", 0644).ok());
  ASSERT_EQ(::link(other.c_str(), scratch.c_str()), 0);
  EXPECT_TRUE(replace_file(path, "three", 0644).ok());
  EXPECT_EQ(folder.read("file"), "three");
  EXPECT_EQ(folder.read("other"), "other");
}

TEST(RegularFileRule, NothingElseIsRead) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("file", "0123456789");
  EXPECT_EQ(read_regular_file(file, 4), "0123");
  const std::string link = folder.path() + "/link";
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& other : {link, pipe, folder.path(), folder.path() + "/none"}) {
    EXPECT_EQ(read_regular_file(other, 4), std::nullopt) << other;
  }
}

TEST(ReplaceFileRule, AnErrorNamesThePath) {
  const Result<> status = replace_file("/nowhere/at/all", "", 0644);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/nowhere/at/all"), std::string::npos);
}

TEST(StateRule, ItIsReadAsItWasWritten) {
  for (const auto phase :
       {AgentState::Phase::kWaiting, AgentState::Phase::kRunning, AgentState::Phase::kOver}) {
    const AgentState state{
        .phase = phase, .renewed = SteadyTime(seconds(77)), .duration = seconds(30)};
    const std::optional<AgentState> read = parse_state(format_state(state));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->phase, phase);
    EXPECT_EQ(read->renewed, state.renewed);
    EXPECT_EQ(read->duration, seconds(30));
  }
  for (const char* const other :
       {"", "running", "running 1", "running -1 5", "running 1 0", "ran 1 2", "running x y"}) {
    EXPECT_FALSE(parse_state(other)) << other;
  }
}

TEST(StateRule, AnAgentThatWaitsIsWellWhileItIsAtWork) {
  const AgentState state{.phase = AgentState::Phase::kWaiting,
                         .renewed = SteadyTime(seconds(100)),
                         .duration = seconds(30)};
  EXPECT_EQ(complaint(state, SteadyTime(seconds(119))), "");
  EXPECT_NE(complaint(state, SteadyTime(seconds(120))), "");
}

TEST(StateRule, AWorkerIsWellWhileItsChildRunsAndItsLastRenewalIsYoung) {
  AgentState state{.phase = AgentState::Phase::kRunning,
                   .renewed = SteadyTime(seconds(100)),
                   .duration = seconds(30)};
  EXPECT_EQ(complaint(state, SteadyTime(seconds(119))), "");
  EXPECT_NE(complaint(state, SteadyTime(seconds(120))), "");
  state.phase = AgentState::Phase::kOver;
  EXPECT_NE(complaint(state, SteadyTime(seconds(101))), "");
  EXPECT_NE(complaint(std::nullopt, SteadyTime(seconds(101))), "");
}

TEST(CheckpointFileRule, EachOneIsSeenOnceWithItsText) {
  const test::TemporaryFolder folder;
  const std::string progress = folder.path() + "/progress";
  CheckpointFile file(progress);
  EXPECT_FALSE(file.look());
  ASSERT_TRUE(leave_checkpoint(progress, "page 7\nline 2", false).ok());
  const auto seen = file.look();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->text, "page 7\nline 2");
  EXPECT_FALSE(file.look());
  ASSERT_TRUE(leave_checkpoint(progress, "page 7\nline 2", false).ok());
  EXPECT_TRUE(file.look()) << "the same text is another checkpoint";
  folder.write("progress.checkpoint", "id\n\xff");
  EXPECT_FALSE(file.look()) << "not UTF-8";
  folder.write("progress.checkpoint", "id2\n" + std::string(1025, 'x'));
  EXPECT_FALSE(file.look()) << "too long: the API server would refuse the renewal";
}

TEST(CheckpointFileRule, AWaitEndsWithTheAcknowledgementOrWithTheAgent) {
  const test::TemporaryFolder folder;
  const std::string progress = folder.path() + "/progress";
  EXPECT_FALSE(leave_checkpoint(progress, "a", true).ok()) << "no agent runs here";
  AgentState state;
  state.phase = AgentState::Phase::kRunning;
  state.renewed = steady_now();
  state.duration = seconds(10);
  ASSERT_TRUE(replace_file(progress + ".agent", format_state(state), 0644).ok());
  std::thread agent([&] {
    CheckpointFile file(progress);
    std::optional<Checkpoint> seen;
    while (!seen || seen->text != "b") seen = file.look();
    file.acknowledge(seen->id);
  });
  const Result<> kept = leave_checkpoint(progress, "b", true);
  agent.join();
  EXPECT_TRUE(kept.ok()) << kept.error().message;
}

TEST(CheckpointText, IsBoundedTextOfTheArgumentOrOfAFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(*checkpoint_text("page 7"), "page 7");
  EXPECT_EQ(*checkpoint_text("@" + folder.write("at", "page 8\n")), "page 8");
  EXPECT_TRUE(checkpoint_text(std::string(1024, 'x')).ok());
  EXPECT_FALSE(checkpoint_text("@" + folder.write("long", std::string(1024, 'x') +
                                                              std::string(70, '\n') + "and more"))
                   .ok())
      << "what is cut off is not lost silently";
  EXPECT_FALSE(checkpoint_text(std::string(1025, 'x')).ok());
  EXPECT_FALSE(checkpoint_text("\xff").ok());
  EXPECT_FALSE(checkpoint_text("@" + folder.path() + "/none").ok());
}

class Heard : public SlotRunner::Listener {
 public:
  void happened(int /*slot*/, SlotEvent event) override {
    starts_missed += std::holds_alternative<Missed>(event) ? 1 : 0;
    ends += std::holds_alternative<Ended>(event) ? 1 : 0;
    deaths += std::holds_alternative<AllDead>(event) ? 1 : 0;
  }
  void says(std::string /*line*/) override { ++lines; }

  int starts_missed = 0;
  int ends = 0;
  int deaths = 0;
  int lines = 0;
};

// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(SlotRunnerRule, AStartWithoutADescriptorIsMissedAndIsNoEnd) {
  const test::TemporaryFolder folder;
  boost::asio::io_context io;
  Output out(STDOUT_FILENO);
  Output err(STDERR_FILENO);
  Heard heard;
  SlotRunner runner(io,
                    {.folder = folder.path() + "/0",
                     .command = {"true"},
                     .environment = {"PATH=/usr/bin:/bin"},
                     .no_op = false,
                     .duration = seconds(60)},
                    0, out, err, heard);
  {
    const NoDescriptors none;
    runner.start(steady_now() + seconds(30));
  }
  EXPECT_EQ(heard.starts_missed, 0) << "not while the order to start is obeyed";
  runner.tick(steady_now(), std::nullopt);
  EXPECT_EQ(heard.starts_missed, 1);
  EXPECT_EQ(heard.ends, 0);
  EXPECT_EQ(heard.deaths, 1);
  EXPECT_EQ(heard.lines, 1);
  EXPECT_EQ(runner.tick(steady_now(), std::nullopt), SteadyTime::max());
  EXPECT_EQ(heard.starts_missed, 1);
}

}  // namespace
}  // namespace holdfast::agent
