// Real processes: what is below whom, and that a slot's are distinguished from all others.
#include "agent/serve/shepherd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/base/process_table.h"
#include "agent/base/signals.h"
#include "core/steady_now.h"
#include "tests/unit/kube/temporary_folder.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kLimit{30};

class ShepherdRule : public ::testing::Test {
 protected:
  void SetUp() override {
    sigprocmask(SIG_SETMASK, nullptr, &mask_);
    block_signals();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    null_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  void TearDown() override {
    for (Shepherd* const one : {&first, &second}) {
      if (one->pid() > 0) ::kill(one->pid(), SIGKILL);
    }
    while (kill_orphans({}) > 0) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
    ::close(null_);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

  std::string start(Shepherd& shepherd, const std::string& script,
                    SteadyTime before = steady_now() + kLimit) const {
    return start_words(shepherd, {"sh", "-c", script}, before);
  }
  std::string start_words(Shepherd& shepherd, std::vector<std::string> words,
                          SteadyTime before = steady_now() + kLimit) const {
    return shepherd.start(
        {std::move(words), {"PATH=/usr/bin:/bin", "DIR=" + folder.path()}, null_, null_, null_},
        before);
  }
  // Until it has said something.
  static Shepherd::News news(Shepherd& shepherd) {
    for (;;) {
      pollfd ready = {shepherd.descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, 30000) != 1) {
        ADD_FAILURE() << "no news";
        return {};
      }
      const Shepherd::News news = shepherd.read();
      if (news.missed || news.exit_code || news.closed) return news;
    }
  }
  static void reap(Shepherd& shepherd) {
    int status = 0;
    ASSERT_EQ(::waitpid(shepherd.pid(), &status, 0), shepherd.pid());
    shepherd.reaped(status);
  }
  template <class Condition>
  static void wait_until(Condition condition) {
    const SteadyTime until = steady_now() + kLimit;
    while (!condition() && steady_now() < until) ::poll(nullptr, 0, 5);
    ASSERT_TRUE(condition());
  }
  bool exists(const std::string& name) const {
    return ::access((folder.path() + "/" + name).c_str(), F_OK) == 0;
  }

  const test::TemporaryFolder folder;
  Shepherd first, second;

 private:
  sigset_t mask_{};
  int null_ = -1;
};

// A daemon: away by setsid and a double fork, and deaf.
const std::string kDaemon =
    "(setsid sh -c 'trap \"\" TERM; touch $DIR/$0; while :; do sleep 100; done' NAME &) ; ";

std::string daemon_named(const std::string& name) {
  std::string text = kDaemon;
  return text.replace(text.find("NAME"), 4, name);
}

TEST_F(ShepherdRule, TheEndOfTheCommandIsSaidWithItsCode) {
  ASSERT_EQ(start(first, "exit 7"), "");
  EXPECT_EQ(news(first).exit_code, 7);
  reap(first);
  EXPECT_TRUE(first.ended_well());
  ASSERT_EQ(start(first, "kill -SEGV $$"), "");
  EXPECT_EQ(news(first).exit_code, 128 + SIGSEGV);
  reap(first);
}

TEST_F(ShepherdRule, ACommandThatCannotBeginInTimeNeverRuns) {
  ASSERT_EQ(start(first, "touch $DIR/begun", steady_now()), "");
  const Shepherd::News late = news(first);
  EXPECT_TRUE(late.missed);
  reap(first);
  EXPECT_FALSE(exists("begun"));
}

// As a user whose processes are all used up by the shepherd. Root has no such limit.
TEST_F(ShepherdRule, ACommandWithoutAProcessIsAMissedStart) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobodyElse = 54321;
  const pid_t other = ::fork();
  if (other == 0) {
    const rlimit most = {2, 2};  // this process and the shepherd
    ::setrlimit(RLIMIT_NPROC, &most);
    if (::setresuid(kNobodyElse, kNobodyElse, kNobodyElse) != 0) ::_exit(1);
    if (!start(first, "exit 0").empty()) ::_exit(2);
    const Shepherd::News late = news(first);
    if (!late.missed || late.exit_code) ::_exit(3);
    int status = 0;
    if (::waitpid(first.pid(), &status, 0) != first.pid()) ::_exit(4);
    first.reaped(status);
    ::_exit(first.ended_well() ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

TEST_F(ShepherdRule, ACommandThatCannotBeRunHasAnExitCode) {
  ASSERT_EQ(start_words(first, {"/no/such/command"}), "");
  EXPECT_EQ(news(first).exit_code, 127);
  reap(first);
  ASSERT_EQ(start_words(first, {"/etc/passwd"}), "");
  const Shepherd::News ended = news(first);
  EXPECT_EQ(ended.exit_code, 126);
  EXPECT_FALSE(ended.missed);
  reap(first);
}

TEST_F(ShepherdRule, ItEndsWhenTheLastDescendantDoes) {
  ASSERT_EQ(start(first, daemon_named("daemon") + "until [ -e $DIR/daemon ]; do sleep 0.02; done"),
            "");
  EXPECT_EQ(news(first).exit_code, 0);
  EXPECT_EQ(::waitpid(first.pid(), nullptr, WNOHANG), 0);
  EXPECT_FALSE(ProcessTable::read().below(first.pid()).empty());
  const SteadyTime until = steady_now() + kLimit;
  int status = 0;
  while (::waitpid(first.pid(), &status, WNOHANG) == 0 && steady_now() < until) {
    first.kill();
    ::poll(nullptr, 0, 5);
  }
  first.reaped(status);
  EXPECT_TRUE(first.ended_well());
}

TEST_F(ShepherdRule, AKillLeavesOtherSlotsAlone) {
  ASSERT_EQ(start(first, daemon_named("one") + "sleep 1000"), "");
  ASSERT_EQ(start(second, daemon_named("two") + "sleep 1000"), "");
  wait_until([&] { return exists("one") && exists("two"); });
  const std::size_t others = ProcessTable::read().below(second.pid()).size();
  first.kill();
  EXPECT_EQ(news(first).exit_code, 128 + SIGKILL);
  wait_until([&] {
    first.kill();
    return ProcessTable::read().below(first.pid()).empty();
  });
  EXPECT_GE(ProcessTable::read().below(second.pid()).size(), std::min<std::size_t>(others, 2));
  EXPECT_EQ(second.read().exit_code, std::nullopt);
}

TEST_F(ShepherdRule, TheGroupOfTheCommandIsAskedToEnd) {
  ASSERT_EQ(start(first, "trap 'exit 5' TERM; touch $DIR/there; while :; do sleep 0.02; done"), "");
  wait_until([&] { return exists("there"); });
  first.terminate();
  EXPECT_EQ(news(first).exit_code, 5);
  reap(first);
}

TEST_F(ShepherdRule, OrphansOfAShepherdThatWasKilledAreFoundAndKilled) {
  ASSERT_EQ(start(first, daemon_named("daemon") + "sleep 1000"), "");
  ASSERT_EQ(start(second, "sleep 1000"), "");
  wait_until([&] { return exists("daemon"); });
  ::kill(first.pid(), SIGKILL);
  reap(first);
  EXPECT_FALSE(first.ended_well());
  EXPECT_EQ(first.pid(), -1);
  wait_until([&] {
    const std::size_t left = kill_orphans({second.pid()});
    for (const pid_t child : ProcessTable::read().children_of(::getpid())) {
      if (child != second.pid()) ::waitpid(child, nullptr, WNOHANG);
    }
    return left == 0;
  });
  EXPECT_EQ(second.read().exit_code, std::nullopt);
}

}  // namespace
}  // namespace holdfast::agent
