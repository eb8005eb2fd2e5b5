#include "client/kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "tests/support/manual_loop.h"
#include "tests/unit/kube/temporary_folder.h"

namespace holdfast::kube {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

// Manual time, and a post() that other threads may call.
class SharedLoop : public test::ManualLoop {
 public:
  void post(Callback callback) override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() != thread_) {
      callback = [this, callback = std::move(callback)] {
        callback();
        ++from_others_;
      };
    }
    posted_.push_back(std::move(callback));
    wake_.notify_all();
  }

  // Of what other threads have posted, how much has run.
  int from_others() const { return from_others_; }

  // Runs what is posted, and waits for nothing.
  void run_posted() {
    run_posted_until([this] {
      const std::lock_guard lock(mutex_);
      return posted_.empty();
    });
  }

  // Runs what is posted until `done`. False: it took longer than any machine needs.
  bool run_posted_until(const std::function<bool()>& done) {
    while (!done()) {
      Callback next;
      {
        std::unique_lock lock(mutex_);
        if (!wake_.wait_for(lock, seconds(30), [this] { return !posted_.empty(); })) return false;
        next = std::move(posted_.front());
        posted_.pop_front();
      }
      next();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Callback> posted_;
  int from_others_ = 0;  // the loop's
  const std::thread::id thread_ = std::this_thread::get_id();
};

// A plugin that hangs until the test says how it ends.
class HangingPlugin {
 public:
  Result<std::string> run() {
    std::unique_lock lock(mutex_);
    ++begun_;
    wake_.notify_all();
    wake_.wait(lock, [this] { return !outputs_.empty() || over_; });
    if (outputs_.empty()) return make_error(ErrorCode::kCancelled, "the test is over");
    Result<std::string> output = std::move(outputs_.front());
    outputs_.pop_front();
    return output;
  }
  void end(Result<std::string> output) {
    const std::lock_guard lock(mutex_);
    outputs_.push_back(std::move(output));
    wake_.notify_all();
  }
  void end_all() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    wake_.notify_all();
  }
  bool has_begun(int runs) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, seconds(30), [&] { return begun_ >= runs; });
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Result<std::string>> outputs_;
  int begun_ = 0;
  bool over_ = false;
};

Error broken() { return make_error(ErrorCode::kTransient, "broken"); }

std::string token_output(const std::string& token, const std::string& expires = "") {
  Json status = {{"token", token}};
  if (!expires.empty()) status["expirationTimestamp"] = expires;
  return Json{{"apiVersion", kV1}, {"kind", "ExecCredential"}, {"status", status}}.dump();
}

class ExecPluginTest : public testing::Test {
 protected:
  ExecPluginTest() {
    config_.api_version = kV1;
    config_.command = "get-token";
  }

  // The plugin is `program_` unless a test wants real ones.
  void start(bool real_program = false) {
    ExecCredentials::Dependencies dependencies{loop_, Log(), [this] { return wall_; }, {}, {}};
    if (takes_certificates_) {
      dependencies.on_certificate = [this](const std::string& certificate, const std::string& key) {
        certificates_.push_back(certificate + "/" + key);
        return certificate_status_;
      };
    }
    if (!real_program) {
      dependencies.run = [this](const ProgramRun& run, const StopEvent& stop) {
        ++runs_;
        last_run_ = run;
        return program_(run, stop);
      };
    }
    dependencies.login = login_;
    credentials_ = std::make_unique<ExecCredentials>(std::move(dependencies), config_);
  }

  ~ExecPluginTest() override {
    hanging_.end_all();
    credentials_.reset();
  }

  // The wall clock first: a run that a timer starts is judged by it.
  void advance(Duration by) {
    wall_ += by;
    loop_.advance(by);
    loop_.run_posted();
  }

  // The plugin hangs at each run until end_run().
  void start_hanging() {
    program_ = [this](const ProgramRun&, const StopEvent&) { return hanging_.run(); };
    start();
  }
  void end_run(Result<std::string> output) {
    const int before = loop_.from_others();
    hanging_.end(std::move(output));
    EXPECT_TRUE(loop_.run_posted_until([&] { return loop_.from_others() > before; }));
    loop_.run_posted();
  }
  // The first run has given this.
  void start_with(const std::string& output) {
    start_hanging();
    std::string answered;
    credentials_->authorization([&answered](Result<std::string> value) { answered = *value; });
    end_run(output);
    ASSERT_EQ(answered, "Bearer one");
  }
  // Waits until so many runs are over.
  void await_runs(int runs) {
    EXPECT_TRUE(loop_.run_posted_until([&] { return loop_.from_others() >= runs; }));
    EXPECT_EQ(runs_, runs);
  }

  // The answer that comes without waiting for the plugin.
  std::string ask_now() {
    const auto answer = std::make_shared<std::string>("waits");
    credentials_->authorization([answer](Result<std::string> value) {
      *answer = value.ok() ? *value : value.error().message;
    });
    loop_.run_posted();
    return *answer;
  }

  std::string ask() {
    std::optional<Result<std::string>> answer;
    credentials_->authorization(
        [&answer](Result<std::string> value) { answer = std::move(value); });
    EXPECT_FALSE(answer) << "answered from inside the call";
    EXPECT_TRUE(loop_.run_posted_until([&answer] { return answer.has_value(); }));
    if (!answer) return "no answer";
    return answer->ok() ? **answer : answer->error().message;
  }

  SharedLoop loop_;
  Time wall_ = *parse_time("2030-01-01T00:00:00Z");
  ExecConfig config_;
  std::atomic<int> runs_{0};
  std::function<Result<std::string>(const ProgramRun&, const StopEvent&)> program_ =
      [](const ProgramRun&, const StopEvent&) { return token_output("one"); };
  std::optional<Login> login_;
  ProgramRun last_run_;  // the run's thread writes it
  bool takes_certificates_ = true;
  Result<> certificate_status_ = Unit{};
  std::vector<std::string> certificates_;
  HangingPlugin hanging_;
  std::unique_ptr<ExecCredentials> credentials_;
};

TEST_F(ExecPluginTest, AScriptGetsItsTaskByEnvironmentAndGivesAToken) {
  const test::TemporaryFolder folder;
  config_.command = folder.write_script(
      "plugin", "printf '%s' \"$KUBERNETES_EXEC_INFO\" > " + folder.path() +
                    "/info\n"
                    "cat <<EOF\n"
                    "{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": "
                    "\"ExecCredential\", \"status\": {\"token\": \"$1-$EXTRA\"}}\nEOF\n");
  config_.arguments = {"token"};
  config_.environment = {{"EXTRA", "x"}};
  config_.cluster = {{"server", "https://api"}};
  start(true);
  EXPECT_EQ(ask(), "Bearer token-x");
  const Result<Json> info = parse_json(folder.read("info"));
  ASSERT_TRUE(info.ok());
  const Json expected = {
      {"apiVersion", kV1},
      {"kind", "ExecCredential"},
      {"spec", {{"interactive", false}, {"cluster", {{"server", "https://api"}}}}}};
  EXPECT_EQ(*info, expected);
}

TEST_F(ExecPluginTest, WithoutAPersonAProgramHasALimitAndNoTerminal) {
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(last_run_.limit, Duration(seconds(30)));
  EXPECT_EQ(last_run_.person, Person::kNobody);
}

TEST_F(ExecPluginTest, APersonHasAnyTimeToLogIn) {
  login_ = Login{};
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(last_run_.limit, std::nullopt);
}

TEST_F(ExecPluginTest, TheTerminalIsLentForEachRunThatMayAsk) {
  std::string order;
  login_ = Login{true, [&] { order += "lent "; }, [&] { order += "back "; }};
  program_ = [&](const ProgramRun&, const StopEvent&) {
    order += "run ";
    return token_output("one");
  };
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(order, "lent run back ");
  EXPECT_EQ(last_run_.person, Person::kAnswers);
}

TEST_F(ExecPluginTest, AProgramThatNeverAsksIsNotLentTheTerminal) {
  config_.mode = InteractiveMode::kNever;
  login_ = Login{true, [] { FAIL(); }, [] { FAIL(); }};
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(last_run_.person, Person::kReader);
}

TEST_F(ExecPluginTest, AfterEachFailedLoginTheNextOneComesLater) {
  login_ = Login{true, {}, {}};
  program_ = [](const ProgramRun&, const StopEvent&) -> Result<std::string> { return broken(); };
  start();
  ask();
  int runs = 1;
  for (const int wait : {10, 20, 40, 80, 160, 320, 600, 600, 600}) {
    advance(seconds(wait) - std::chrono::milliseconds(1));
    EXPECT_THAT(ask_now(), HasSubstr("broken"));
    EXPECT_EQ(runs_, runs) << wait;
    advance(std::chrono::milliseconds(1));
    await_runs(++runs);
  }
  program_ = [](const ProgramRun&, const StopEvent&) { return token_output("two"); };
  advance(minutes(10));
  await_runs(++runs);
  EXPECT_EQ(ask_now(), "Bearer two");
}

TEST_F(ExecPluginTest, RefusalsOfTheServerAskNoPersonSoonerAfterAFailedLogin) {
  login_ = Login{true, {}, {}};
  start();
  EXPECT_EQ(ask(), "Bearer one");
  program_ = [](const ProgramRun&, const StopEvent&) -> Result<std::string> { return broken(); };
  int runs = 1;
  advance(kExecRetry);
  credentials_->invalidate();
  await_runs(++runs);
  for (const int wait : {10, 20, 40}) {
    for (int second = 1; second < wait; ++second) {
      advance(seconds(1));
      credentials_->invalidate();
      EXPECT_EQ(ask_now(), "Bearer one");
      EXPECT_EQ(runs_, runs) << wait;
    }
    advance(seconds(1));
    await_runs(++runs);
  }
}

TEST_F(ExecPluginTest, AfterARefusalRequestsWaitUntilThePersonHasLoggedInAgain) {
  login_ = Login{true, {}, {}};
  start_with(token_output("one"));
  advance(kExecRetry);
  credentials_->invalidate();
  ASSERT_TRUE(hanging_.has_begun(2));
  advance(minutes(20));
  std::string answered = "waits";
  credentials_->authorization([&](Result<std::string> value) { answered = *value; });
  loop_.run_posted();
  EXPECT_EQ(answered, "waits");
  end_run(token_output("two"));
  EXPECT_EQ(answered, "Bearer two");
}

struct ModeCase {
  InteractiveMode mode;
  std::optional<Login> login;
  Person person;
  bool is_refused;
};

TEST(ExecPluginMode, DecidesWhoIsThereForTheProgramAsInKubectl) {
  const Login answers{true, {}, {}};
  const Login reads{false, {}, {}};
  using enum InteractiveMode;
  for (const auto& [mode, login, person, is_refused] :
       std::vector<ModeCase>{{kNever, std::nullopt, Person::kNobody, false},
                             {kNever, reads, Person::kReader, false},
                             {kNever, answers, Person::kReader, false},
                             {kIfAvailable, std::nullopt, Person::kNobody, false},
                             {kIfAvailable, reads, Person::kReader, false},
                             {kIfAvailable, answers, Person::kAnswers, false},
                             {kAlways, std::nullopt, Person::kNobody, true},
                             {kAlways, reads, Person::kReader, true},
                             {kAlways, answers, Person::kAnswers, false}}) {
    ExecConfig config;
    config.mode = mode;
    EXPECT_EQ(person_for(config, login), person);
    EXPECT_EQ(!check_interactive(config, login).ok(), is_refused);
    const Json info = *parse_json(exec_info(config, person));
    EXPECT_EQ(info["spec"]["interactive"], person == Person::kAnswers);
  }
}

TEST_F(ExecPluginTest, ATokenWithoutExpiryIsKeptUntilTheServerRefusesIt) {
  start();
  EXPECT_EQ(ask(), "Bearer one");
  advance(hours(1000));
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(runs_, 1);
  credentials_->invalidate();
  EXPECT_EQ(ask(), "Bearer one");
  await_runs(2);
}

// ---- Renewed in the background.

TEST_F(ExecPluginTest, ATokenIsRenewedFiveMinutesBeforeItExpiresAndRequestsGoOn) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(minutes(55) - seconds(1));
  EXPECT_EQ(hanging_.begun(), 1);
  advance(seconds(1));
  ASSERT_TRUE(hanging_.has_begun(2)) << "nobody asked";
  EXPECT_EQ(ask_now(), "Bearer one");
  advance(minutes(4));
  EXPECT_EQ(ask_now(), "Bearer one");
  end_run(token_output("two", "2030-01-01T02:00:00Z"));
  EXPECT_EQ(ask_now(), "Bearer two");
}

TEST_F(ExecPluginTest, AShortTokenIsRenewedAtHalfItsTime) {
  start_with(token_output("one", "2030-01-01T00:01:00Z"));
  advance(seconds(29));
  EXPECT_EQ(hanging_.begun(), 1);
  advance(seconds(1));
  EXPECT_TRUE(hanging_.has_begun(2));
  EXPECT_EQ(ask_now(), "Bearer one");
}

TEST_F(ExecPluginTest, AnExpiredTokenIsNotUsedAndWhoAsksWaits) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(hours(1));
  EXPECT_EQ(ask_now(), "waits");
  end_run(token_output("two", "2030-01-01T02:00:00Z"));
  EXPECT_EQ(ask_now(), "Bearer two");
}

TEST_F(ExecPluginTest, AFailedRenewalIsTriedAgainWithBackOffWhileTheTokenIsUsed) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(minutes(55));
  int runs = 2;
  for (const seconds wait : {seconds(10), seconds(20), seconds(40), seconds(60), seconds(60)}) {
    ASSERT_TRUE(hanging_.has_begun(runs));
    end_run(broken());
    EXPECT_EQ(ask_now(), "Bearer one");
    advance(wait - seconds(1));
    EXPECT_EQ(hanging_.begun(), runs) << "too early";
    advance(seconds(1));
    ++runs;
  }
  ASSERT_TRUE(hanging_.has_begun(runs));
  end_run(token_output("two", "2030-01-01T02:00:00Z"));
  EXPECT_EQ(ask_now(), "Bearer two");
}

TEST_F(ExecPluginTest, TheBackOffEndsWhenTheTokenExpires) {
  start_with(token_output("one", "2030-01-01T00:01:00Z"));
  advance(seconds(30));
  ASSERT_TRUE(hanging_.has_begun(2));
  end_run(broken());
  advance(seconds(10));
  ASSERT_TRUE(hanging_.has_begun(3));
  end_run(broken());  // the next back-off is 20 s; the token expires in 20 s
  advance(seconds(5));
  EXPECT_EQ(ask_now(), "Bearer one");
  advance(seconds(15));
  EXPECT_TRUE(hanging_.has_begun(4));
  EXPECT_EQ(ask_now(), "waits");
}

TEST_F(ExecPluginTest, AProgramThatKeepsItsTokenUntilItExpiresIsNotRunAllTheTime) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("one", "2030-01-01T00:20:00Z");
  };
  start();
  ask();
  advance(minutes(15));
  int runs = 1;
  for (const double after : {150.0, 75.0, 37.5, 18.75}) {  // what is left, halved
    await_runs(++runs);
    advance(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(after)));
  }
  await_runs(6);  // and 18.75 s before the end there is no half left that is worth it
  advance(seconds(18));
  EXPECT_EQ(runs_, 6);
  EXPECT_EQ(ask_now(), "Bearer one");
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("two", "2030-01-01T00:40:00Z");
  };
  advance(seconds(1));
  EXPECT_EQ(ask(), "Bearer two");
}

// ---- Refused by the server.

TEST_F(ExecPluginTest, ARefusedTokenIsRenewedAtOnceAndWhoAsksWaitsForIt) {
  start_with(token_output("one"));
  advance(minutes(10));
  credentials_->invalidate();
  ASSERT_TRUE(hanging_.has_begun(2)) << "nobody asked";
  EXPECT_EQ(ask_now(), "waits");
  end_run(token_output("two"));
  EXPECT_EQ(ask_now(), "Bearer two");
}

TEST_F(ExecPluginTest, APluginThatHangsAfterA401HoldsUpNobodyForLong) {
  start_with(token_output("one"));
  advance(minutes(10));
  credentials_->invalidate();
  std::string answered;
  credentials_->authorization([&answered](Result<std::string> value) { answered = *value; });
  advance(kExecPatience);
  EXPECT_EQ(answered, "Bearer one") << "for all that is known it has not expired";
  credentials_->invalidate();
  EXPECT_EQ(ask_now(), "Bearer one") << "the wait is one for each run";
}

TEST_F(ExecPluginTest, A401DoesNotWaitForTheBackOff) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(minutes(55));
  int runs = 2;
  for (const seconds wait : {seconds(10), seconds(20), seconds(40)}) {
    ASSERT_TRUE(hanging_.has_begun(runs++));
    end_run(broken());
    advance(wait);
  }
  ASSERT_TRUE(hanging_.has_begun(runs));
  end_run(broken());  // the next back-off is a minute
  credentials_->invalidate();
  EXPECT_EQ(ask_now(), "Bearer one");
  advance(kExecRetry - seconds(1));
  EXPECT_EQ(hanging_.begun(), runs);
  advance(seconds(1));
  EXPECT_TRUE(hanging_.has_begun(runs + 1));
}

TEST_F(ExecPluginTest, A401DuringARunStartsNoOther) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(minutes(55));
  ASSERT_TRUE(hanging_.has_begun(2));
  credentials_->invalidate();
  EXPECT_EQ(ask_now(), "waits");
  end_run(token_output("two", "2030-01-01T02:00:00Z"));
  EXPECT_EQ(ask_now(), "Bearer two");
  EXPECT_EQ(hanging_.begun(), 2);
}

TEST_F(ExecPluginTest, AFailureAfterA401LeavesTheTokenToTheServersJudgement) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  advance(minutes(10));
  credentials_->invalidate();
  std::string answered;
  credentials_->authorization([&answered](Result<std::string> value) { answered = *value; });
  end_run(broken());
  EXPECT_EQ(answered, "Bearer one");
  EXPECT_EQ(ask_now(), "Bearer one");
}

TEST_F(ExecPluginTest, AfterShutDownNoTimerIsLeft) {
  start_with(token_output("one", "2030-01-01T01:00:00Z"));
  EXPECT_EQ(loop_.timers(), 1U);
  credentials_->invalidate();
  credentials_->shut_down();
  EXPECT_EQ(loop_.timers(), 0U);
  advance(hours(2));
  EXPECT_EQ(hanging_.begun(), 1);
}

TEST_F(ExecPluginTest, AfterShutDownDuringARenewalNoTimerIsLeft) {
  start_with(token_output("one"));
  advance(minutes(10));
  credentials_->invalidate();
  ASSERT_TRUE(hanging_.has_begun(2));
  credentials_->shut_down();
  EXPECT_EQ(loop_.timers(), 0U);
}

// ---- What the answer may be.

TEST_F(ExecPluginTest, ATokenThatSeemsExpiredIsUsedAndTheProgramNotRunForEachRequest) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("one", "2029-12-31T23:00:00Z");
  };
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(runs_, 1);
  advance(kExecRetry);
  await_runs(2);
  EXPECT_EQ(ask_now(), "Bearer one");
}

TEST_F(ExecPluginTest, AServerThatRefusesEverythingDoesNotRunTheProgramEachTime) {
  start();
  for (int i = 0; i < 5; ++i) {
    ask();
    credentials_->invalidate();
  }
  EXPECT_EQ(runs_, 1);
}

TEST_F(ExecPluginTest, ThoseWhoAskDuringARunShareIt) {
  std::promise<void> release;
  program_ = [released = release.get_future().share()](const ProgramRun&, const StopEvent&) {
    released.wait();
    return Result<std::string>(token_output("shared"));
  };
  start();
  std::vector<std::string> answers;
  for (int i = 0; i < 3; ++i) {
    credentials_->authorization(
        [&answers](Result<std::string> value) { answers.push_back(*value); });
  }
  release.set_value();
  ASSERT_TRUE(loop_.run_posted_until([&answers] { return answers.size() == 3; }));
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(answers[2], "Bearer shared");
}

TEST_F(ExecPluginTest, AMissingProgramShowsTheInstallHint) {
  config_.command = "holdfast-no-such-plugin";
  config_.install_hint = "install it from example.org";
  start(true);
  const std::string message = ask();
  EXPECT_THAT(message, HasSubstr("\"holdfast-no-such-plugin\" cannot be started"));
  EXPECT_THAT(message, HasSubstr("install it from example.org"));
}

TEST_F(ExecPluginTest, AFailureIsTheAnswerForAWhileThenItIsTriedAgain) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return make_error(ErrorCode::kTransient, "broken");
  };
  start();
  EXPECT_THAT(ask(), HasSubstr("broken"));
  EXPECT_THAT(ask_now(), HasSubstr("broken"));
  EXPECT_EQ(runs_, 1);
  advance(kExecRetry);
  await_runs(2);
  EXPECT_THAT(ask_now(), HasSubstr("broken"));
  advance(kExecRetry);
  await_runs(3);
}

std::string certificate_output(const std::string& expires) {
  return Json{{"apiVersion", kV1},
              {"kind", "ExecCredential"},
              {"status",
               {{"clientCertificateData", "CERT"},
                {"clientKeyData", "KEY"},
                {"expirationTimestamp", expires}}}}
      .dump();
}

TEST_F(ExecPluginTest, ACertificateIsHandedOnOnceAndTheHeaderIsEmpty) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return certificate_output("2030-01-01T01:00:00Z");
  };
  start();
  EXPECT_EQ(ask(), "");
  advance(minutes(55));
  await_runs(2);
  EXPECT_EQ(ask_now(), "");
  EXPECT_THAT(certificates_, testing::ElementsAre("CERT/KEY"));
}

TEST_F(ExecPluginTest, ACertificateThatIsRefusedIsAFailure) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return certificate_output("2030-01-01T01:00:00Z");
  };
  certificate_status_ = make_error(ErrorCode::kInvalid, "the key does not fit");
  start();
  EXPECT_THAT(ask(), HasSubstr("the key does not fit"));
}

TEST_F(ExecPluginTest, ACertificateWithNobodyToTakeItIsRefusedClearly) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return certificate_output("2030-01-01T01:00:00Z");
  };
  takes_certificates_ = false;
  start();
  EXPECT_THAT(ask(), HasSubstr("client certificates are not supported here"));
}

TEST_F(ExecPluginTest, ShutDownAnswersAllAndStopsTheProgram) {
  config_.command = "sleep";
  config_.arguments = {"1000"};
  start(true);
  std::optional<Result<std::string>> waiting;
  credentials_->authorization([&waiting](Result<std::string> value) { waiting = value; });
  credentials_->shut_down();
  ASSERT_TRUE(loop_.run_posted_until([&waiting] { return waiting.has_value(); }));
  EXPECT_EQ(waiting->error().code, ErrorCode::kCancelled);
  EXPECT_THAT(ask(), HasSubstr("not needed any more"));
}

TEST_F(ExecPluginTest, EndWaitsUntilTheProgramIsGoneAndTheTerminalIsOurs) {
  std::atomic<bool> is_lent{false};
  login_ = Login{true, [&] { is_lent = true; }, [&] { is_lent = false; }};
  const test::TemporaryFolder folder;
  config_.command =
      folder.write_script("login", "echo $$ > " + folder.path() + "/pid\nexec sleep 1000\n");
  start(true);
  std::string answered = "waits";
  credentials_->authorization(
      [&](Result<std::string> value) { answered = value.ok() ? *value : value.error().message; });
  while (folder.read("pid").find('\n') == std::string::npos) std::this_thread::yield();
  EXPECT_TRUE(is_lent);
  credentials_->end();
  EXPECT_FALSE(is_lent);
  EXPECT_EQ(::kill(std::stoi(folder.read("pid")), 0), -1) << "it runs on";
  loop_.run_posted();
  EXPECT_NE(answered, "waits");
}

TEST_F(ExecPluginTest, ItsEndAnswersAllToo) {
  config_.command = "sleep";
  config_.arguments = {"1000"};
  start(true);
  std::optional<Result<std::string>> waiting;
  credentials_->authorization([&waiting](Result<std::string> value) { waiting = value; });
  credentials_.reset();
  ASSERT_TRUE(loop_.run_posted_until([&waiting] { return waiting.has_value(); }));
  EXPECT_EQ(waiting->error().code, ErrorCode::kCancelled);
}

TEST(ExecCredentialTest, AWholeAnswerIsRead) {
  const Result<ExecCredential> credential = parse_exec_credential(
      R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {
          "token": "t", "clientCertificateData": "c", "clientKeyData": "k",
          "expirationTimestamp": "2030-01-01T00:00:00Z"}})",
      kV1);
  ASSERT_TRUE(credential.ok());
  EXPECT_EQ(credential->token + credential->certificate + credential->key, "tck");
  EXPECT_EQ(credential->expires, parse_time("2030-01-01T00:00:00Z"));
}

TEST(ExecCredentialTest, WhatIsNoCredentialIsRefusedAndNotShown) {
  const std::string head = R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": )";
  for (const std::string& output :
       {std::string("hunter2"), std::string(), std::string("[]"), head + R"("hunter2"})",
        head + R"("ExecCredential"})", head + R"("ExecCredential", "status": {"token": ""}})",
        head + R"("ExecCredential", "status": {"clientKeyData": "hunter2"}})",
        head + R"("ExecCredential", "status": {"token": "hunter2", "expirationTimestamp": "x"}})",
        std::string(R"({"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": )"
                    R"("ExecCredential", "status": {"token": "hunter2"}})")}) {
    const Result<ExecCredential> credential = parse_exec_credential(output, kV1);
    ASSERT_FALSE(credential.ok()) << output;
    EXPECT_THAT(credential.error().message, Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace holdfast::kube
