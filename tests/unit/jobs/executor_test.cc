// The executor writes only while the job's shard is held, one write after the other.
#include "operator/jobs/executor.h"
#include "core/json.h"

#include <set>

#include "core/invariant.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::jobs {
namespace {

const char* const kTemplate = R"({"spec": {"containers": [{"name": "main", "image": "x"}]}})";

class FakeOwnership : public membership::Ownership {
 public:
  std::optional<Claim> claim(const std::string&) const override { return Claim{}; }
  bool holds(const Claim&) const override { return held; }
  Duration time_left() const override { return std::chrono::seconds(8); }
  bool covers(const Claim& claim, const std::string&) const override { return claim.shard == 0; }
  std::string shard_label(int shard) const override { return std::to_string(shard) + "-of-32"; }
  bool held = true;
};

class SilentTelemetry : public Telemetry {
 public:
  void attempt_ended(const std::string&, const std::string&) override {}
  void stage_ended(const std::string&, std::optional<Duration>) override {}
  void recovered(const std::string&, reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void admitted(const std::string&, const std::string&, Duration) override {}
  void shard_moved(const std::string&) override {}
};

class SilentEvents : public events::EventSink {
 public:
  void record(const events::ObjectReference&, bool, const std::string& reason, const std::string&,
              const std::string&) override {
    last = reason;
  }
  std::string last;
};

class ExecutorTest : public kube::ClientTest {
 protected:
  ExecutorTest() {
    job_.name = job_.job.name = "train";
    job_.namespace_ = job_.job.namespace_ = "default";
    job_.uid = job_.job.uid = "job-uid";
    job_.texts = codecs::JobTexts{kTemplate, "{}"};
    reconciler::WriteStatus intent;
    intent.status.phase = reconciler::Phase::kRunning;
    intent.status.attempt = 1;
    intent.status.begun().pod_name = "train-1-abcde";
    intent.status.waiting =
        reconciler::Waiting{reconciler::Reason::kPodStarting, "m", "n", std::nullopt};
    decision_.writes = {intent, reconciler::CreatePod{1, "train-1-abcde"}};
  }
  auto perform() {
    const auto begin = [this](const reconciler::CreatePod& write) {
      created_ =
          start(executor_.create_pod(job_, membership::Ownership::Claim{}, write, memory_, Log()));
    };
    return start(
        executor_.perform(job_, membership::Ownership::Claim{}, decision_, memory_, Log(), begin));
  }

  FakeOwnership ownership_;
  SilentTelemetry telemetry_;
  SilentEvents events_;
  Executor executor_{loop_, client_, ownership_, telemetry_, events_, "agent"};
  codecs::CachedJob job_;
  reconciler::CreationRefusal last_refusal() const {
    return memory_.attempts.at(1).refusals.last(loop_.now()).value();
  }

  JobMemory memory_;
  reconciler::Decision decision_;
  std::shared_ptr<std::optional<Result<Executor::Outcome>>> created_;
};

Task<Result<bool>> breaks_an_invariant(Task<Result<Executor::Outcome>> task) {
  try {
    co_await task;
  } catch (const BrokenInvariant&) {
    co_return true;
  }
  co_return false;
}

TEST_F(ExecutorTest, AClaimOfAnotherShardWritesNothing) {
  const membership::Ownership::Claim foreign{/*shard=*/1, /*tenure=*/0};
  const auto broken = start(breaks_an_invariant(
      executor_.perform(job_, foreign, decision_, memory_, Log(), [](const auto&) {})));
  loop_.run_ready();
  EXPECT_TRUE(broken->value().value());
  EXPECT_EQ(transport_.pending(), 0u);
}

// Its pods are created in the reconcile that records their intents.
TEST_F(ExecutorTest, AStageMoveHasTheJobDecidedAgain) {
  auto& intent = std::get<reconciler::WriteStatus>(decision_.writes[0]);
  intent.status.stage = 1;
  decision_.writes.resize(1);
  const auto done = perform();
  transport_.answer(200, R"({"metadata": {"name": "train", "uid": "job-uid",
      "resourceVersion": "7"}})");
  loop_.run_ready();
  ASSERT_TRUE(*done && **done);
  EXPECT_TRUE((**done)->decide_again);
}

TEST_F(ExecutorTest, ACleanUpThatFailsBesideAStageMoveDoesNotPutItsPodsOff) {
  std::get<reconciler::WriteStatus>(decision_.writes[0]).status.stage = 1;
  decision_.writes = {decision_.writes[0], reconciler::ReleasePod{"train-1-abcde", "u"}};
  const auto done = perform();
  while (transport_.pending() > 0) {
    const bool releases = transport_.request().method == "PATCH";
    transport_.answer(releases ? 500 : 200, R"({"kind": "Status", "message": "no",
        "metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
    loop_.run_ready();
  }
  ASSERT_TRUE(done->has_value() && (*done)->ok());
  EXPECT_TRUE((**done)->decide_again);
  EXPECT_TRUE((**done)->later) << "the release is tried again";
}

// A job that waited in a queue has no template in the cache.
TEST_F(ExecutorTest, TheAnswerToTheIntentBringsTheTemplateThatTheCacheDoesNotHave) {
  job_.texts->pod_template.clear();
  job_.job.generation = 4;
  std::get<reconciler::WriteStatus>(decision_.writes[0]).status.observed_generation = 4;
  const auto done = perform();
  EXPECT_EQ(test::header(transport_.request().headers, "Accept").find("PartialObjectMetadata"),
            std::string::npos)
      << "the whole job is asked for";
  transport_.answer(200, std::string(R"({"metadata": {"name": "train", "uid": "job-uid",
      "resourceVersion": "7", "generation": 4}, "spec": {"template": )") +
                             kTemplate + "}}");
  loop_.run_ready();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "POST") << "no further read";
  EXPECT_NE(transport_.request().body.find("\"image\":\"x\""), std::string::npos);
}

TEST_F(ExecutorTest, ATemplateThatTheAnswerDoesNotHaveIsRead) {
  job_.texts->pod_template.clear();
  const auto done = perform();
  transport_.answer(200,
                    R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
  loop_.run_ready();
  loop_.run_ready();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "GET");
  EXPECT_EQ(test::header(transport_.request().headers, "Accept").find("PartialObjectMetadata"),
            std::string::npos)
      << "metadata alone has no template";
}

TEST_F(ExecutorTest, WritesGoOutOneByOneInTheirOrder) {
  const auto done = perform();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "PUT");
  transport_.answer(200,
                    R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
  loop_.run_ready();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "POST");
  transport_.answer(201, R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "8"}})");
  loop_.run_ready();
  ASSERT_TRUE(done->has_value());
  EXPECT_TRUE((*done)->ok());
  EXPECT_EQ(memory_.own.job, 7u);
  EXPECT_EQ(memory_.attempts[1].requests.created_version, 8u);
}

std::string live_job(const std::string& version, std::int64_t generation) {
  const Json job = {{"metadata",
                     {{"name", "train"},
                      {"uid", "job-uid"},
                      {"resourceVersion", version},
                      {"generation", generation},
                      {"labels", {{"app", "x"}}}}},
                    {"spec", {{"template", Json::parse(kTemplate)}}}};
  return job.dump();
}

// The cache has a part of a finished job's status: the rest is read, and of that version alone.
TEST_F(ExecutorTest, TheRestOfAFinishedJobsStatusIsOfTheVersionThatWasDecidedOn) {
  job_.texts.reset();
  job_.version = job_.job.version = 6;
  job_.job.generation = 3;
  job_.job.status.phase = reconciler::Phase::kFailed;
  reconciler::WriteStatus seen;
  seen.status = job_.job.status;
  seen.status.observed_generation = 3;
  decision_.writes = {seen};
  const auto live = [](const std::string& version) {
    Json job = Json::parse(live_job(version, 3));
    job["status"] = {{"phase", "Failed"},
                     {"attempt", 1},
                     {"history", {{{"attempt", 1}, {"outcome", "Failed"}, {"message", "why"}}}}};
    return job.dump();
  };
  const auto changed = perform();
  transport_.answer(200, live("7"));
  loop_.run_ready();
  ASSERT_TRUE(changed->has_value());
  EXPECT_EQ((*changed)->error().code, ErrorCode::kConflict);
  const auto done = perform();
  transport_.answer(200, live("6"));
  loop_.run_ready();
  EXPECT_EQ(transport_.request().method, "PUT");
  const std::string& body = transport_.request().body;
  EXPECT_NE(body.find(R"("message":"why")"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("observedGeneration":3)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("resourceVersion":"6")"), std::string::npos) << body;
  transport_.answer(200, live("8"));
  loop_.run_ready();
  ASSERT_TRUE(done->has_value());
  EXPECT_TRUE((*done)->ok());
}

// A finished job's texts are not cached, and those of a job with a large template.
TEST_F(ExecutorTest, TextsThatAreNotCachedAreReadBeforeTheStatusIsWritten) {
  job_.texts.reset();
  job_.job.generation = 3;
  decision_.writes.pop_back();
  const auto changed = perform();
  EXPECT_EQ(transport_.request().method, "GET");
  transport_.answer(200, live_job("7", 4));
  loop_.run_ready();
  ASSERT_TRUE(changed->has_value());
  EXPECT_EQ((*changed)->error().code, ErrorCode::kConflict) << "its spec has changed";
  EXPECT_EQ(memory_.own.job, 7u) << "the next decision waits for this version";
  const auto done = perform();
  transport_.answer(200, live_job("6", 3));
  loop_.run_ready();
  EXPECT_EQ(transport_.request().method, "PUT");
  EXPECT_NE(transport_.request().body.find(R"("labels":{"app":"x"})"), std::string::npos);
  transport_.answer(200, live_job("8", 3));
  loop_.run_ready();
  ASSERT_TRUE(done->has_value());
  EXPECT_TRUE((*done)->ok());
}

TEST_F(ExecutorTest, ATemplateThatIsNotCachedIsReadBeforeItsPodIsCreated) {
  job_.texts.reset();
  job_.job.generation = 3;
  decision_.writes.erase(decision_.writes.begin());
  perform();
  EXPECT_EQ(transport_.request().method, "GET");
  transport_.answer(200, live_job("7", 4));
  loop_.run_ready();
  ASSERT_TRUE(created_->has_value());
  EXPECT_EQ((*created_)->error().code, ErrorCode::kConflict);
  perform();
  transport_.answer(500, R"({"kind": "Status", "code": 500, "message": "etcd is away"})");
  loop_.run_ready();
  ASSERT_TRUE(created_->has_value());
  EXPECT_EQ(last_refusal().kind, reconciler::CreationRefusal::Kind::kRefused);
  perform();
  transport_.answer(200, live_job("7", 3));
  loop_.run_ready();
  EXPECT_EQ(transport_.request().method, "POST");
  EXPECT_NE(transport_.request().body.find(R"("image":"x")"), std::string::npos);
  transport_.answer(201, R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "8"}})");
  loop_.run_ready();
  ASSERT_TRUE(created_->has_value());
  EXPECT_TRUE((*created_)->ok());
}

TEST_F(ExecutorTest, NothingIsWrittenOnceTheShardIsLost) {
  ownership_.held = false;
  const auto done = perform();
  EXPECT_TRUE(transport_.history.empty());
  ASSERT_TRUE(done->has_value());
  EXPECT_EQ((*done)->error().code, ErrorCode::kCancelled);
}

TEST_F(ExecutorTest, WhatFollowsIsNotWrittenWhenTheShardIsLostMeanwhile) {
  const auto done = perform();
  ownership_.held = false;
  transport_.answer(200,
                    R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
  loop_.run_ready();
  EXPECT_EQ(transport_.history.size(), 1u);
  ASSERT_TRUE(done->has_value());
  EXPECT_EQ((*done)->error().code, ErrorCode::kCancelled);
}

TEST_F(ExecutorTest, WhatFollowsARefusedWriteIsNotWritten) {
  const auto done = perform();
  transport_.answer(409, R"({"kind": "Status", "reason": "Conflict", "code": 409})");
  loop_.run_ready();
  EXPECT_EQ(transport_.history.size(), 1u);
  ASSERT_TRUE(done->has_value());
  EXPECT_EQ((*done)->error().code, ErrorCode::kConflict);
}

TEST_F(ExecutorTest, TheNextPodDoesNotWaitWithoutEndForTheDeletionOfTheOldOne) {
  const std::string broken =
      R"({"kind": "Status", "code": 500, "message": "failed calling webhook \"guard\""})";
  decision_.writes = {reconciler::DeletePod{"old", "old-uid", 5, 0},
                      reconciler::CreatePod{2, "train-2-abcde"}};
  const auto first = perform();
  transport_.answer(500, broken);
  loop_.run_ready();
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->error().http_status, 500) << "told to go first, if that is possible";
  EXPECT_EQ(events_.last, "");
  loop_.advance(std::chrono::seconds(5));
  const auto second = perform();
  transport_.answer(500, broken);
  loop_.run_ready();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "POST");
  EXPECT_EQ(events_.last, "PodDeletionRefused");
  transport_.answer(201, R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "8"}})");
  loop_.run_ready();
  ASSERT_TRUE(second->has_value());
  ASSERT_TRUE((*second)->ok());
  ASSERT_TRUE((**second)->later) << "the deletion is tried again";
  EXPECT_EQ((**second)->later->http_status, 500);
  decision_.writes.pop_back();
  const auto third = perform();
  transport_.answer(200, R"({"metadata": {"name": "old", "uid": "u", "resourceVersion": "9"}})");
  loop_.run_ready();
  EXPECT_TRUE((*third)->ok());
  EXPECT_TRUE(memory_.deletions.failing_since.empty());
}

// Nothing forbids the deletion: the view was old. Its watch is waited for, or replaced.
TEST_F(ExecutorTest, AConflictIsNoDeletionThatFails) {
  const auto stop_and_go_on = [this](const std::string& live) {
    decision_.writes = {reconciler::DeletePod{"old", "old-uid", 5, 0},
                        reconciler::CreatePod{2, "train-2-abcde"}};
    const auto done = perform();
    transport_.answer(409, R"({"kind": "Status", "reason": "Conflict", "code": 409})");
    loop_.run_ready();
    transport_.answer(200, live);
    loop_.run_ready();
    return done;
  };
  const std::string newer =
      R"({"metadata": {"name": "old", "uid": "old-uid", "resourceVersion": "9"}})";
  EXPECT_FALSE((*stop_and_go_on(newer))->ok());
  loop_.advance(std::chrono::minutes(1));
  EXPECT_FALSE((*stop_and_go_on(newer))->ok());
  EXPECT_EQ(events_.last, "");
  EXPECT_EQ(memory_.own.pod, 9u);
  // A webhook may answer like that too.
  const std::string same =
      R"({"metadata": {"name": "old", "uid": "old-uid", "resourceVersion": "5"}})";
  EXPECT_FALSE((*stop_and_go_on(same))->ok());
  loop_.advance(std::chrono::seconds(5));
  const auto last = stop_and_go_on(same);
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().method, "POST");
  transport_.answer(201, R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "10"}})");
  loop_.run_ready();
  EXPECT_TRUE((*last)->ok());
}

TEST_F(ExecutorTest, ItIsRememberedWhetherADeletionWasRefusedOrHasFailed) {
  decision_.writes = {reconciler::DeletePod{"old", "old-uid", 5, 0}};
  const auto ask = [this](int status) {
    const auto done = perform();
    transport_.answer(status, R"({"kind": "Status", "message": "no"})");
    loop_.run_ready();
    loop_.advance(std::chrono::seconds(30));
  };
  ask(400);
  EXPECT_TRUE(memory_.deletions.troubles.at("old").refused)
      << "a webhook that denies may answer so";
  ask(429);
  EXPECT_FALSE(memory_.deletions.troubles.at("old").refused);
  EXPECT_EQ(memory_.deletions.troubles.at("old").message, "no");
  ask(500);
  EXPECT_FALSE(memory_.deletions.troubles.at("old").refused);
  ask(404);
  EXPECT_TRUE(memory_.deletions.troubles.empty());
}

TEST_F(ExecutorTest, AReleaseThatFailsHoldsUpNoEndOfTheTimeToLive) {
  decision_.writes = {reconciler::ReleasePod{"train-1-abcde", "u"}, reconciler::DeleteJob{}};
  const auto done = perform();
  std::set<std::string> methods;
  while (transport_.pending() > 0) {
    methods.insert(transport_.request().method);
    transport_.answer(transport_.request().method == "PATCH" ? 403 : 200,
                      R"({"kind": "Status", "message": "no"})");
    loop_.run_ready();
  }
  EXPECT_TRUE(methods.count("DELETE"));
  EXPECT_FALSE((*done)->ok()) << "the release is tried again";
}

// ---- A creation, and what is known of it.

TEST_F(ExecutorTest, ARequestForAPodIsOpenUntilItsAnswerOrAMinuteLater) {
  decision_.writes.erase(decision_.writes.begin());
  perform();
  loop_.run_ready();
  AttemptMemory& attempt = memory_.attempts.at(1);
  EXPECT_EQ(attempt.requests.asked_at, loop_.now());
  const SteadyTime asked = loop_.now();
  loop_.advance(std::chrono::seconds(2));
  transport_.answer(504, R"({"kind": "Status", "reason": "Timeout"})");
  loop_.run_ready();
  EXPECT_FALSE(attempt.requests.asked_at);
  EXPECT_EQ(attempt.requests.unanswered_until, asked + reconciler::kCreationLimit);
  perform();
  transport_.answer(403, R"({"kind": "Status", "message": "no"})");
  loop_.run_ready();
  EXPECT_EQ(attempt.requests.unanswered_until, asked + reconciler::kCreationLimit)
      << "the answer to another request says nothing of the first";
}

TEST_F(ExecutorTest, APodThatWasAStrangerIsNeverTheAttempts) {
  decision_.writes = {reconciler::CreatePod{1, "train-1-abcde", Time{}}};
  const auto meet = [this](const std::string& owner) {
    perform();
    transport_.answer(409, R"({"kind": "Status", "reason": "AlreadyExists", "code": 409})");
    loop_.run_ready();
    transport_.answer(200, R"({"metadata": {"name": "train-1-abcde", "namespace": "default",
        "uid": "squatter", "resourceVersion": "8",
        "annotations": {"holdfast.dev/intent": "1970-01-01T00:00:00.000000Z"}, )" +
                               owner + R"( "labels": {"holdfast.dev/job-uid": "job-uid"}}})");
    loop_.run_ready();
  };
  meet("");
  EXPECT_EQ(last_refusal().kind, reconciler::CreationRefusal::Kind::kNameTaken);
  meet(R"("ownerReferences": [{"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
          "name": "train", "uid": "job-uid", "controller": true}],)");
  EXPECT_EQ(last_refusal().in_a_row, 2);
  EXPECT_FALSE(memory_.attempts.at(1).pod_existed);
  executor_.pod_exists("default", 1, "squatter", memory_);
  EXPECT_FALSE(memory_.attempts.at(1).pod_existed) << "nor by the watch";
}

TEST_F(ExecutorTest, ADeletionThatFailedOnceIsForgottenWhenNothingIsToBeDeleted) {
  decision_.writes = {reconciler::DeletePod{"old", "old-uid", 5, 0}};
  const auto first = perform();
  transport_.answer(500, "{}");
  loop_.run_ready();
  EXPECT_FALSE(memory_.deletions.failing_since.empty());
  decision_.writes.clear();
  EXPECT_TRUE((*perform())->ok());
  EXPECT_TRUE(memory_.deletions.failing_since.empty());
}

constexpr const char* kBrokenByAWebhook =
    R"({"kind": "Status", "reason": "Invalid", "code": 422, "message": "Pod \"p\" is invalid",
        "details": {"causes": [{"reason": "FieldValueRequired", "field": "spec.containers[1].image",
                                "message": "Required value"}]}})";

TEST_F(ExecutorTest, ThePodsUidIsKnownFromTheAnswerToItsCreation) {
  decision_.writes.erase(decision_.writes.begin());
  const auto done = perform();
  transport_.answer(201, R"({"metadata": {"name": "p", "uid": "made", "resourceVersion": "8"}})");
  loop_.run_ready();
  EXPECT_TRUE(done->has_value());
  EXPECT_TRUE(memory_.attempts.at(1).pod_existed);
  EXPECT_EQ(memory_.attempts.at(1).pod_uid, "made");
}

TEST_F(ExecutorTest, APodOfTheNameIsTheSameOnlyWithTheMarkOfTheIntent) {
  const Time intent = *parse_time("2026-01-02T03:04:05Z") + Duration(4711);
  const auto pod = [&](const char* owner, Time mark) {
    const Json json = {{"metadata",
                        {{"name", "train-1-abcde"},
                         {"uid", "there"},
                         {"resourceVersion", "9"},
                         {"annotations", {{"holdfast.dev/intent", format_time_nanos(mark)}}},
                         {"ownerReferences", Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                                                           {"kind", "DurableJob"},
                                                           {"name", "train"},
                                                           {"uid", owner},
                                                           {"controller", true}}})}}}};
    return json.dump();
  };
  const auto met = [&](const std::string& there) {
    memory_ = JobMemory();
    decision_.writes = {reconciler::CreatePod{1, "train-1-abcde", intent}};
    const auto done = perform();
    transport_.answer(409, R"({"kind": "Status", "reason": "AlreadyExists", "code": 409})");
    loop_.run_ready();
    transport_.answer(200, there);
    loop_.run_ready();
    EXPECT_TRUE((*done)->ok());
    return memory_.attempts[1].pod_uid;
  };
  EXPECT_EQ(met(pod("job-uid", intent)), "there");
  EXPECT_EQ(met(pod("job-uid", intent + Duration(1))), "");
  EXPECT_EQ(last_refusal().kind, reconciler::CreationRefusal::Kind::kNameTaken);
  EXPECT_EQ(met(pod("another-uid", intent)), "");
}

TEST_F(ExecutorTest, ARefusalThatNamesFieldsIsFinalOnlyIfTheBareTemplateIsRefusedToo) {
  using Kind = reconciler::CreationRefusal::Kind;
  const auto refused = [&](int status, const std::string& dry_run) {
    memory_ = JobMemory();
    decision_.writes = {reconciler::CreatePod{1, "train-1-abcde"}};
    const auto done = perform();
    transport_.answer(422, kBrokenByAWebhook);
    loop_.run_ready();
    EXPECT_EQ(transport_.request().method, "POST");
    EXPECT_NE(transport_.request().target.find("/podtemplates?dryRun=All"), std::string::npos);
    transport_.answer(status, dry_run);
    loop_.run_ready();
    EXPECT_TRUE(done->has_value());
    EXPECT_NE(last_refusal().message.find("is invalid"), std::string::npos);
    return last_refusal().kind;
  };
  const std::string of_template =
      R"({"kind": "Status", "reason": "Invalid", "code": 422, "message": "PodTemplate is invalid",
          "details": {"causes": [{"field": "template.spec.containers[0].image"}]}})";
  const std::string of_webhook =
      R"({"kind": "Status", "reason": "Invalid", "code": 422,
          "message": "admission webhook \"guard\" denied the request: no",
          "details": {"causes": [{"field": "template.spec"}]}})";
  EXPECT_EQ(refused(422, of_template), Kind::kTemplateInvalid);
  EXPECT_EQ(refused(422, of_webhook), Kind::kTemplateRefused);
  EXPECT_EQ(refused(201, "{}"), Kind::kTemplateRefused);
  EXPECT_EQ(refused(403, R"({"kind": "Status", "reason": "Forbidden", "code": 403})"),
            Kind::kTemplateRefused);
}

TEST_F(ExecutorTest, RefusalsInARowAreCountedWithTheOneOnRecord) {
  reconciler::JobView doubted;
  doubted.job.status.phase = reconciler::Phase::kRunning;
  doubted.job.status.attempt = 1;
  doubted.job.status.begun().pod_name = "train-1-abcde";
  doubted.begun().observed.refusal = reconciler::CreationRefusal{
      reconciler::CreationRefusal::Kind::kTemplateRefused, "no", std::chrono::seconds(5)};
  const reconciler::Decision decided = reconciler::decide(doubted, Time(std::chrono::hours(1)));
  const auto refuse = [&] {
    decision_.writes = {reconciler::CreatePod{1, "train-1-abcde"}};
    const auto done = perform();
    transport_.answer(422, kBrokenByAWebhook);
    loop_.run_ready();
    transport_.answer(201, "{}");
    loop_.run_ready();
    EXPECT_TRUE(done->has_value());
    return last_refusal().in_a_row;
  };
  EXPECT_EQ(refuse(), 1);
  EXPECT_EQ(refuse(), 2);
  memory_ = JobMemory();
  job_.job.status = std::get<reconciler::WriteStatus>(decided.writes.at(0)).status;
  EXPECT_EQ(refuse(), 2) << "an earlier process had the first";
}

TEST_F(ExecutorTest, AGrantWhoseAnswerIsLostMayHaveBeenMade) {
  transport_.date = Time(std::chrono::seconds(1'800'000'000));
  decision_.writes = {decision_.writes[0], reconciler::WriteLease{"", 0, 1, "p/u", "p/u"}};
  const auto done = perform();
  transport_.answer(200,
                    R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
  loop_.run_ready();
  EXPECT_TRUE(memory_.attempts[1].lease_asked) << "before there is an answer";
  transport_.answer(403, R"({"kind": "Status", "reason": "Forbidden", "code": 403})");
  loop_.run_ready();
  EXPECT_TRUE(done->has_value());
  EXPECT_FALSE(memory_.attempts[1].lease_asked) << "a refusal is no grant";
}

// No watch of this replica shows a Lease that bears another shard's label.
TEST_F(ExecutorTest, ALeaseThatItsLabelHidesGetsItsLabelBack) {
  transport_.date = Time(std::chrono::seconds(1'800'000'000));
  const reconciler::Write status = decision_.writes[0];
  for (const char* const label : {"0-of-32", "5-of-32", "5-of-16", ""}) {
    decision_.writes = {status, reconciler::WriteLease{"", 0, 1, "p/u", "p/u"}};
    const auto done = perform();
    transport_.answer(
        200, R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
    loop_.run_ready();
    transport_.answer(409, R"({"kind": "Status", "reason": "AlreadyExists", "message": "there"})");
    loop_.run_ready();
    Json found = {
        {"metadata",
         {{"name", "holdfast-job-uid"},
          {"namespace", "default"},
          {"uid", "lease-uid"},
          {"resourceVersion", "9"},
          {"labels", {{"holdfast.dev/job-uid", "job-uid"}, {"holdfast.dev/shard", label}}},
          {"ownerReferences", Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                                            {"kind", "DurableJob"},
                                            {"name", "train"},
                                            {"uid", "job-uid"},
                                            {"controller", true}}})}}}};
    transport_.answer(200, found.dump());
    loop_.run_ready();
    const bool is_hidden = std::string(label) == "5-of-32";
    ASSERT_EQ(transport_.pending(), is_hidden ? 1U : 0U) << label;
    if (!is_hidden) continue;
    const Json put = Json::parse(transport_.request().body);
    EXPECT_EQ(put["metadata"]["labels"]["holdfast.dev/shard"], "0-of-32");
    EXPECT_EQ(put["metadata"]["resourceVersion"], "9");
    transport_.answer(200, found.dump());
    loop_.run_ready();
  }
}

TEST_F(ExecutorTest, APodIsGivenToAnotherShardAsItWasSeenAndNotOnceItHasChanged) {
  const auto pod = std::make_shared<codecs::CachedPod>();
  pod->namespace_ = "default";
  pod->name = "train-1-abcde";
  pod->uid = "pod-uid";
  pod->version = 9;
  for (const int status : {200, 404, 409, 500}) {
    const auto done = start(executor_.give_pod_to_shard(pod, "5-of-32", {}));
    const Json change = {{"uid", "pod-uid"},
                         {"resourceVersion", "9"},
                         {"labels", {{"holdfast.dev/shard", "5-of-32"}}}};
    EXPECT_EQ(Json::parse(transport_.request().body), Json({{"metadata", change}}));
    transport_.answer(status, R"({"kind": "Status", "message": "no"})");
    loop_.run_ready();
    ASSERT_TRUE(done->has_value());
    EXPECT_EQ((*done)->ok(), status != 500) << status;
  }
}

TEST_F(ExecutorTest, ARefusedLeaseIsRememberedAndHasTheJobDecidedAgainWithoutIt) {
  transport_.date = Time(std::chrono::seconds(1'800'000'000));
  decision_.writes = {decision_.writes[0], reconciler::WriteLease{"", 0, 1, "p/u", "p/u"}};
  const auto done = perform();
  transport_.answer(200,
                    R"({"metadata": {"name": "train", "uid": "job-uid", "resourceVersion": "7"}})");
  loop_.run_ready();
  transport_.answer(403, R"({"kind": "Status", "reason": "Forbidden", "code": 403,
                             "message": "exceeded quota: leases"})");
  loop_.run_ready();
  ASSERT_TRUE(done->has_value());
  ASSERT_TRUE((*done)->ok());
  EXPECT_TRUE((**done)->decide_again);
  EXPECT_NE(memory_.runs[0].lease_refusal.find("exceeded quota"), std::string::npos);
  EXPECT_GT(memory_.runs[0].lease_retry_at, loop_.now());
  EXPECT_EQ(events_.last, "LeaseRefused");
  decision_.writes.erase(decision_.writes.begin());
  const auto again = perform();
  transport_.answer(201, R"({"metadata": {"name": "l", "uid": "u", "resourceVersion": "8"}})");
  loop_.run_ready();
  EXPECT_TRUE((*again)->ok());
  EXPECT_EQ(memory_.runs[0].lease_refusal, "");
}

}  // namespace
}  // namespace holdfast::jobs
