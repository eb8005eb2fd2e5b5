#include "operator/kube/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

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
    posted_.push_back(std::move(callback));
    wake_.notify_all();
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
};

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
        return program_(run, stop);
      };
    }
    credentials_ = std::make_unique<ExecCredentials>(std::move(dependencies), config_);
  }

  void advance(Duration by) {
    loop_.advance(by);
    wall_ += by;
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
  bool takes_certificates_ = true;
  Status certificate_status_ = Unit{};
  std::vector<std::string> certificates_;
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

TEST_F(ExecPluginTest, ATokenWithoutExpiryIsKeptUntilTheServerRefusesIt) {
  start();
  EXPECT_EQ(ask(), "Bearer one");
  advance(hours(1000));
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(runs_, 1);
  credentials_->invalidate();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(runs_, 2);
}

TEST_F(ExecPluginTest, ATokenIsRenewedAMinuteBeforeItExpires) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("one", "2030-01-01T01:00:00Z");
  };
  start();
  ask();
  advance(minutes(59) - seconds(1));
  ask();
  EXPECT_EQ(runs_, 1);
  advance(seconds(1));
  ask();
  EXPECT_EQ(runs_, 2);
}

TEST_F(ExecPluginTest, AShortTokenIsRenewedAtHalfItsTime) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("one", "2030-01-01T00:01:00Z");
  };
  start();
  ask();
  advance(seconds(29));
  ask();
  EXPECT_EQ(runs_, 1);
  advance(seconds(1));
  ask();
  EXPECT_EQ(runs_, 2);
}

TEST_F(ExecPluginTest, ATokenThatSeemsExpiredIsUsedAndTheProgramNotRunForEachRequest) {
  program_ = [](const ProgramRun&, const StopEvent&) {
    return token_output("one", "2029-12-31T23:00:00Z");
  };
  start();
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(ask(), "Bearer one");
  EXPECT_EQ(runs_, 1);
  advance(kExecRetry);
  ask();
  EXPECT_EQ(runs_, 2);
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
  EXPECT_THAT(ask(), HasSubstr("broken"));
  EXPECT_EQ(runs_, 1);
  advance(kExecRetry);
  ask();
  EXPECT_EQ(runs_, 2);
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
  advance(hours(1));
  EXPECT_EQ(ask(), "");
  EXPECT_EQ(runs_, 2);
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
