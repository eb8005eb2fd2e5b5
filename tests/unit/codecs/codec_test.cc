// Jobs and pods between JSON and the reconciler's types.
#include <limits>

#include <gtest/gtest.h>

#include "client/kube/packed.h"
#include "operator/codecs/at_rest.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "operator/injection/pod_body.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

using reconciler::Outcome;
using reconciler::Phase;
using reconciler::PodPhase;
using reconciler::seconds;

Json json(const std::string& text) { return *parse_json(text); }

Json job_json() {
  return json(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"name": "encode", "namespace": "media", "uid": "u-1", "resourceVersion": "17",
                 "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {
      "backoffLimit": 2, "disruptionLimit": 5, "startDeadlineSeconds": 60, "lostAfterSeconds": 15,
      "scheduleDeadlineSeconds": 90,
      "attemptDeadlineSeconds": 30, "activeDeadlineSeconds": 300, "ttlSecondsAfterFinished": 0,
      "podReplacementPolicy": "Failed", "suspend": true,
      "retryBackoff": {"initialSeconds": 1, "factor": 3, "maxSeconds": 9, "jitterPercent": 0},
      "template": {"metadata": {"labels": {"app": "x", "holdfast.dev/attempt": "99"},
                                "annotations": {"a": "b", "holdfast.dev/x": "y"}},
                   "spec": {"initContainers": [{"name": "i"}],
                            "containers": [{"name": "main", "env": [
                              {"name": "URL", "value": "/$(HOLDFAST_ATTEMPT)"},
                              {"name": "HOLDFAST_ATTEMPT", "value": "7"}]}]}}}})json");
}

reconciler::Status full_status() {
  reconciler::Status status;
  status.phase = Phase::kBackoff;
  status.attempt = 4;
  status.failures = 2;
  status.disruptions = 1;
  status.begun().attempt = 4;
  status.begun().attempts = 3;
  status.begun().failures = 2;
  status.begun().disruptions = 1;
  status.begun().pod_uid = "9e0f";
  status.begun().pod_name = "encode-4-abcde";
  status.begun().node_name = "node-1";
  status.start_time = parse_time("2026-01-02T03:04:05Z");
  status.begun().start_time = parse_time("2026-01-02T03:05:05.123456789Z");
  status.begun().next_attempt_time = parse_time("2026-01-02T03:06:05.5Z");
  status.suspended = seconds(12);
  status.waiting =
      reconciler::Waiting{reconciler::Reason::kRetryBackoff, "m", "n",
                          parse_time("2026-01-02T03:06:05Z"), parse_time("2026-01-02T03:05:15Z")};
  reconciler::HistoryEntry entry;
  entry.alone = true;
  entry.attempt = 4;
  entry.pod_uid = "7c8d";
  entry.pod_name = "encode-4-abcde";
  entry.node_name = "node-1";
  entry.outcome = Outcome::kFailed;
  entry.reason = reconciler::AnyReason("OOMKilled");
  entry.exit_code = 137;
  entry.message = "container main ended with exit code 137\nlast line";
  entry.start_time = parse_time("2026-01-02T03:05:05Z");
  entry.end_time = parse_time("2026-01-02T03:05:15Z");
  status.history.push_back(entry);
  status.observed_generation = 3;
  status.conditions.push_back(reconciler::Condition{"Stalled", true, "QuotaExceeded", "no room",
                                                    *parse_time("2026-01-02T03:04:05Z")});
  return status;
}

TEST(JobCodec, ReadsEveryFieldOfTheSpec) {
  const kube::ObjectPtr object = decode_job(document(job_json()));
  ASSERT_TRUE(object);
  const reconciler::Job& job = static_cast<const CachedJob&>(*object).job;
  EXPECT_EQ(job.namespace_, "media");
  EXPECT_EQ(job.uid, "u-1");
  EXPECT_EQ(job.version, 17u);
  EXPECT_EQ(job.generation, 3);
  EXPECT_EQ(job.status.phase, Phase::kNone);
  EXPECT_EQ(job.spec.backoff_limit, 2);
  EXPECT_EQ(job.spec.disruption_limit, 5);
  EXPECT_EQ(job.spec.start_deadline, seconds(60));
  EXPECT_EQ(job.spec.schedule_deadline, seconds(90));
  EXPECT_EQ(job.spec.lost_after, seconds(15));
  EXPECT_EQ(job.spec.attempt_deadline, seconds(30));
  EXPECT_EQ(job.spec.active_deadline, seconds(300));
  EXPECT_EQ(job.spec.ttl_after_finished, seconds(0));
  EXPECT_EQ(job.spec.pod_replacement, reconciler::PodReplacementPolicy::kFailed);
  EXPECT_TRUE(job.spec.suspend);
  EXPECT_FALSE(job.spec.cancel);
  EXPECT_EQ(job.spec.retry_backoff, (reconciler::RetryBackoff{seconds(1), 3, seconds(9), 0}));
}

TEST(JobCodec, AStatusSurvivesTheRoundTripWithItsFractions) {
  const reconciler::Status status = full_status();
  EXPECT_EQ(decode_status({}, document(encode_status({}, status))), status);
}

TEST(JobCodec, ConditionsOfOthersSurviveTheRoundTrip) {
  const Json status = json(R"json({
    "phase": "Pending", "attempt": 1, "completions": "0/1", "failures": 0, "disruptions": 0, "observedGeneration": 1,
    "conditions": [
      {"type": "Ready", "status": "Unknown", "reason": "r", "message": "m", "observedGeneration": 7,
       "lastTransitionTime": "2026-01-02T03:04:05.500000000Z"},
      {"type": "Complete", "status": "False", "reason": "r", "message": "m",
       "observedGeneration": 0, "lastTransitionTime": "2026-01-02T03:04:05Z"},
      {"type": "Quiet", "status": "True", "reason": "r", "message": "",
       "lastTransitionTime": "2026-01-02T03:04:05Z"}]})json");
  EXPECT_EQ(encode_status({}, decode_status({}, document(status))), status);
}

// A job that runs without it would not be written until its attempt is given up.
TEST(JobCodec, AnAttemptOnRecordWithoutAPodsNameHasTheNameOfItsNumber) {
  Json object = job_json();
  object["status"] = {{"phase", "Running"}, {"attempt", 3}};
  const auto pod_name_of = [&] {
    return static_cast<const CachedJob&>(*decode_job(document(object))).job.status.run().pod_name;
  };
  EXPECT_EQ(pod_name_of(), reconciler::pod_name("encode", "u-1", 3));
  object["status"]["runs"] = {{{"index", 0}, {"attempt", 2}, {"podName", "encode-2-other"}}};
  EXPECT_EQ(pod_name_of(), reconciler::pod_name("encode", "u-1", 3)) << "whatever an edit says";
  object["status"] = {{"phase", "Pending"}, {"attempt", 3}};
  EXPECT_EQ(pod_name_of(), "");
}

reconciler::Status read_status(const Json& status) {
  Json object = job_json();
  object["status"] = status;
  return static_cast<const CachedJob&>(*decode_job(document(object))).job.status;
}

// What an edit by hand may have left in a status: no later write may be refused for it, and nothing
// waits for a run that nobody ends.
TEST(ForeignStatus, AJobWithOneRunHasNoSecondOne) {
  const Json wrong = json(R"([{"index": 0, "attempt": 2, "podUID": "p-2", "failures": 1},
                              {"index": 1, "attempt": 1}])");
  for (const char* const phase : {"Running", "Backoff", "Pending"}) {
    const auto runs = read_status({{"phase", phase}, {"attempt", 2}, {"runs", wrong}}).runs;
    ASSERT_EQ(runs.size(), 1u) << phase;
    EXPECT_EQ(runs[0].index, 0);
    EXPECT_EQ(runs[0].pod_uid, "p-2");
    EXPECT_EQ(runs[0].failures, 1);
  }
}

TEST(ForeignStatus, OfTwoRunsOfOneIndexTheLaterAttemptCounts) {
  const Json wrong = json(R"([{"index": 0, "attempt": 1, "podUID": "p-1"},
                              {"index": 0, "attempt": 2, "podUID": "p-2"}])");
  const auto runs = read_status({{"phase", "Running"}, {"attempt", 2}, {"runs", wrong}}).runs;
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].attempt, 2);
  EXPECT_EQ(runs[0].pod_uid, "p-2");
}

TEST(ForeignStatus, TheRunOfAJobWithOneIsTheRunZero) {
  const Json wrong = json(R"([{"index": 7, "attempt": 2, "podUID": "p-2"}])");
  const auto runs = read_status({{"phase", "Running"}, {"attempt", 2}, {"runs", wrong}}).runs;
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].index, 0);
  EXPECT_EQ(runs[0].pod_uid, "p-2") << "the attempt that status.attempt tells of goes on";
}

Json many_runs_json() {
  Json object = job_json();
  object["spec"].update(json(R"json({
    "completions": 10, "parallelism": 4, "completionMode": "Indexed", "indexes": "0,2-5,9",
    "backoffLimitPerIndex": 1, "maxFailedIndexes": 3,
    "podFailurePolicy": {"rules": [
      {"action": "FailJob",
       "onExitCodes": {"containerName": "main", "operator": "In", "values": [1, 42]}},
      {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [3]}},
      {"action": "Ignore",
       "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "Full", "status": "False"}]},
      {"action": "Count", "onExitCodes": {"operator": "In", "values": [5]}}]},
    "successPolicy": {"rules": [{"succeededIndexes": "0,2"}, {"succeededCount": 3},
                                {"succeededIndexes": "2-4", "succeededCount": 2}]}})json"));
  object["spec"].erase("backoffLimit");
  return object;
}

TEST(JobCodec, ReadsWhatTheRunsOfAJobAre) {
  const reconciler::Spec spec = decode_spec(document(many_runs_json()["spec"]));
  EXPECT_EQ(spec.completions, 10);
  EXPECT_EQ(spec.parallelism, 4);
  EXPECT_TRUE(spec.indexed);
  EXPECT_EQ(spec.all_indexes().text(), "0,2-5,9");
  EXPECT_EQ(spec.wanted(), 6);
  EXPECT_TRUE(spec.many_runs());
  EXPECT_EQ(spec.backoff_limit_per_index, 1);
  EXPECT_EQ(spec.max_failed_indexes, 3);
}

TEST(JobCodec, ReadsTheFailurePolicyInItsOrder) {
  using reconciler::PolicyAction;
  const auto rules = decode_spec(document(many_runs_json()["spec"])).pod_failure_policy;
  ASSERT_EQ(rules.size(), 4u);
  EXPECT_EQ(rules[0].action, PolicyAction::kFailJob);
  ASSERT_TRUE(rules[0].exit_codes);
  EXPECT_EQ(rules[0].exit_codes->container, "main");
  EXPECT_TRUE(rules[0].exit_codes->in);
  EXPECT_EQ(rules[0].exit_codes->values, (std::vector<int>{1, 42}));
  EXPECT_EQ(rules[1].action, PolicyAction::kFailIndex);
  EXPECT_EQ(rules[1].exit_codes->container, "") << "any";
  EXPECT_FALSE(rules[1].exit_codes->in);
  EXPECT_EQ(rules[2].action, PolicyAction::kIgnore);
  EXPECT_FALSE(rules[2].exit_codes);
  ASSERT_EQ(rules[2].conditions.size(), 2u);
  EXPECT_EQ(rules[2].conditions[0].type, "DisruptionTarget");
  EXPECT_EQ(rules[2].conditions[0].status, "True");
  EXPECT_EQ(rules[2].conditions[1].status, "False");
  EXPECT_EQ(rules[3].action, PolicyAction::kCount);
}

TEST(JobCodec, ReadsTheSuccessPolicy) {
  const auto rules = decode_spec(document(many_runs_json()["spec"])).success_policy;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].indexes->text(), "0,2");
  EXPECT_FALSE(rules[0].count);
  EXPECT_FALSE(rules[1].indexes);
  EXPECT_EQ(rules[1].count, 3);
  EXPECT_EQ(rules[2].indexes->text(), "2-4");
  EXPECT_EQ(rules[2].count, 2);
}

// Never smaller: of a list that cannot be read whole no part counts, and the rule keeps its place.
TEST(JobCodec, AListThatCannotBeReadWholeRulesNothing) {
  for (const char* const list : {"0,5-3", "0, 1-3", "7,2-4", "1,1", "0-2,2-3", "1,", "x", "-1"}) {
    Json given = json(R"({"completions": 9, "completionMode": "Indexed"})");
    given["indexes"] = list;
    given["successPolicy"] = {
        {"rules", Json::array({{{"succeededIndexes", list}, {"succeededCount", 1}},
                               {{"succeededIndexes", "0"}}})}};
    const reconciler::Spec spec = decode_spec(document(given));
    EXPECT_EQ(spec.wanted(), 9) << list << ": no run is missing";
    ASSERT_EQ(spec.success_policy.size(), 2u) << list;
    EXPECT_TRUE(spec.success_policy[0].indexes->empty()) << list;
    EXPECT_EQ(spec.success_policy[1].indexes->text(), "0") << list;
  }
}

TEST(JobCodec, RunsOnRecordStayThoughIndexesCannotBeRead) {
  Json object = many_runs_json();
  object["spec"]["indexes"] = "0,5-3";
  object["status"] =
      json(R"json({"phase": "Running", "attempt": 9, "waiting": {"reason": "PodRunning",
      "message": "m", "nextAction": "n"}, "runs": [{"index": 7, "attempt": 9, "podName": "other"}]})json");
  const auto job = std::static_pointer_cast<const CachedJob>(decode_job(document(object)));
  EXPECT_EQ(job->job.status.runs.size(), 1u);
  EXPECT_EQ(job->job.unknown, "spec.indexes: 0,5-3") << "and no other opens";
  object["spec"]["indexes"] = "0,2-5";
  object["spec"]["stages"] = Json::array({{{"name", "next"},
                                           {"completions", 3},
                                           {"completionMode", "Indexed"},
                                           {"indexes", "1,1"},
                                           {"template", object["spec"]["template"]}}});
  const auto staged = std::static_pointer_cast<const CachedJob>(decode_job(document(object)));
  EXPECT_EQ(staged->job.unknown, "stage next.indexes: 1,1");
}

TEST(JobCodec, OneRunAtATimeIsTheDefault) {
  const reconciler::Spec spec = decode_spec(document(Json::object()));
  EXPECT_EQ(spec.completions, 1);
  EXPECT_EQ(spec.parallelism, 1);
  EXPECT_FALSE(spec.indexed);
  EXPECT_FALSE(spec.many_runs());
}

TEST(JobCodec, FailuresAreUnlimitedWhereEachIndexHasItsOwnLimit) {
  const auto limit = [](const char* text) {
    return decode_spec(document(json(text))).backoff_limit;
  };
  EXPECT_EQ(limit("{}"), 6);
  EXPECT_EQ(limit(R"({"backoffLimitPerIndex": 0})"), reconciler::kCountLimit);
  EXPECT_EQ(limit(R"({"backoffLimitPerIndex": 0, "backoffLimit": 2})"), 2);
}

TEST(JobCodec, NumbersBeyondTheSchemaAreItsLimits) {
  const reconciler::Spec spec =
      decode_spec(document(json(R"({"completions": 1000000, "parallelism": -1})")));
  EXPECT_EQ(spec.completions, 100'000);
  EXPECT_EQ(spec.parallelism, 0);
}

reconciler::Spec many_runs() { return decode_spec(document(many_runs_json()["spec"])); }

// Of six runs one has succeeded, one has failed, one waits and one is open.
reconciler::Status status_of_many() {
  reconciler::Status status = full_status();
  status.phase = Phase::kRunning;
  status.attempt = 7;
  status.runs.front().index = 2;
  status.runs.front().attempts = 2;
  reconciler::Run open;
  open.index = 3;
  open.attempt = 7;
  open.attempts = 1;
  open.refused = "exceeded quota";
  open.start_time = parse_time("2026-01-02T03:05:05.123456789Z");
  status.runs.push_back(open);
  status.completed.add(0);
  status.failed.add(5);
  status.history.front().index = 5;
  status.history.front().alone = false;
  return status;
}

TEST(JobCodec, AStatusOfManyRunsSurvivesTheRoundTrip) {
  const reconciler::Status status = status_of_many();
  const Json written = encode_status(many_runs(), status);
  EXPECT_EQ(decode_status(many_runs(), document(written)), status);
}

TEST(JobCodec, AStatusOfManyRunsCountsAsBatchV1Does) {
  const Json written = encode_status(many_runs(), status_of_many());
  EXPECT_EQ(written["completions"], "1/6");
  EXPECT_EQ(written["active"], 1);
  EXPECT_EQ(written["succeeded"], 1);
  EXPECT_EQ(written["failed"], 3) << "failures and disruptions";
  EXPECT_EQ(written["completedIndexes"], "0");
  EXPECT_EQ(written["failedIndexes"], "5");
  EXPECT_EQ(written["history"][0]["index"], 5);
  EXPECT_EQ(written["runs"][1]["refused"], "exceeded quota");
}

TEST(JobCodec, AStatusOfOneRunNamesNoIndexes) {
  reconciler::Status status = full_status();
  status.completed.add(0);
  status.runs.clear();
  const Json written = encode_status({}, status);
  EXPECT_EQ(written["completions"], "1/1");
  EXPECT_EQ(written["succeeded"], 1);
  EXPECT_FALSE(written.contains("active")) << "none";
  EXPECT_FALSE(written.contains("completedIndexes"));
  EXPECT_FALSE(written["history"][0].contains("index"));
  EXPECT_EQ(decode_status({}, document(written)), status);
}

// `completions` may change while a job is suspended. History stays as it was written: the API
// server takes no changed entry.
TEST(JobCodec, FewerRunsForgetWhatIsBeyondThemAndMoreRunsForgetNothing) {
  Json written = encode_status(many_runs(), status_of_many());
  written["completedIndexes"] = "0-1,4";
  written["failedIndexes"] = "2,5";
  reconciler::Spec fewer = many_runs();
  fewer.completions = 3;
  const reconciler::Status less = decode_status(fewer, document(written));
  EXPECT_EQ(less.completed.text(), "0,1");
  EXPECT_EQ(less.failed.text(), "2");
  const Json of_one = encode_status({}, decode_status({}, document(written)));
  EXPECT_EQ(of_one["completions"], "1/1");
  EXPECT_EQ(of_one["history"], written["history"]);
  written["completedIndexes"] = "1,4";
  written["succeeded"] = 2;
  EXPECT_TRUE(decode_status({}, document(written)).completed.empty()) << "run 0 has not succeeded";
  const Json one = encode_status({}, full_status());
  EXPECT_EQ(encode_status(many_runs(), decode_status(many_runs(), document(one)))["history"],
            one["history"]);
}

TEST(JobCodec, AJobThatRunsABatchJobHasItsShardAndItsName) {
  Json given = job_json();
  Json& meta = given["metadata"];
  meta["labels"]["holdfast.dev/shard"] = "7-of-32";
  meta["annotations"]["holdfast.dev/batch-job-name"] = "ring";
  const auto read = [&] {
    const kube::ObjectPtr object = decode_job(document(given));
    return static_cast<const CachedJob&>(*object).job;
  };
  EXPECT_EQ(reconciler::shard_key(read()), "u-1") << "a user's own job";
  EXPECT_EQ(read().hostname, "");
  meta["annotations"]["holdfast.dev/batch-job"] = "a-b";
  EXPECT_EQ(reconciler::shard_of(reconciler::shard_key(read()), 32), 7);
  EXPECT_EQ(read().hostname, "ring");
  meta["ownerReferences"] = Json::array({{{"uid", "u-of-job"}, {"controller", true}}});
  EXPECT_EQ(reconciler::shard_of(reconciler::shard_key(read()), 64),
            reconciler::shard_of("u-of-job", 64))
      << "with another number of shards it goes with its Job";
  given["spec"]["queue"] = {{"name", "q"}};
  EXPECT_EQ(reconciler::shard_key(read()), "media");
  for (const char* const bad : {"a.b", "Ring", "a/b"}) {
    meta["annotations"]["holdfast.dev/batch-job-name"] = bad;
    EXPECT_EQ(read().hostname, "") << bad;
  }
}

TEST(JobCodec, CountsEndWhereTheSchemaDoes) {
  reconciler::Status status = full_status();
  status.failures = status.disruptions = reconciler::kCountLimit;
  EXPECT_EQ(encode_status({}, status)["failed"], 2147483647);
}

TEST(JobCodec, ARefusalIsCutToWhatTheSchemaAllows) {
  reconciler::Status status = status_of_many();
  status.runs[1].refused = std::string(2000, 'x');
  const Json written = encode_status(many_runs(), status);
  EXPECT_EQ(written["runs"][1]["refused"], std::string(1024, 'x'));
}

// Whoever may write the status may also write this.
TEST(JobCodec, RunsAreReadInTheOrderOfTheirIndexesAndEachOnce) {
  const char* const text = R"json({"phase": "Running", "attempt": 9, "runs": [
      {"index": 4, "attempt": 3}, {"index": 2, "attempt": 5}, {"index": 4, "attempt": 8}]})json";
  const reconciler::Status status = decode_status(many_runs(), document(json(text)));
  ASSERT_EQ(status.runs.size(), 2u);
  EXPECT_EQ(status.runs[0].index, 2);
  EXPECT_EQ(status.runs[1].index, 4);
  EXPECT_EQ(status.runs[1].attempt, 8) << "the later attempt is the run";
}

// Never smaller: an index that has ended does not run again.
TEST(JobCodec, OfAnEditedListOfEndedIndexesEachPartCounts) {
  const char* const text = R"json({"phase": "Running", "attempt": 9,
      "completedIndexes": "8,3-1,7-99,3", "failedIndexes": "-"})json";
  const reconciler::Status status = decode_status(many_runs(), document(json(text)));
  EXPECT_EQ(status.completed.text(), "1-3,7-9");
  EXPECT_TRUE(status.failed.empty());
}

reconciler::Status read_back(const Json& object) {
  return static_cast<const CachedJob&>(*decode_job(document(object))).job.status;
}

TEST(JobCodec, EachOpenRunHasThePodOfItsAttempt) {
  Json object = many_runs_json();
  object["status"] = json(R"json({"phase": "Running", "attempt": 9, "runs": [
      {"index": 2, "attempt": 5, "podName": "other"},
      {"index": 4, "attempt": 8, "nextAttemptTime": "2026-01-02T04:04:05Z"}]})json");
  const reconciler::Status status = read_back(object);
  ASSERT_EQ(status.runs.size(), 2u);
  EXPECT_EQ(status.runs[0].pod_name, reconciler::pod_name("encode", "u-1", 5));
  EXPECT_EQ(status.runs[0].attempt, 5) << "the job's attempt is another run's";
  EXPECT_TRUE(status.runs[0].open());
  EXPECT_FALSE(status.runs[1].open());
}

TEST(JobCodec, NoRunIsOpenInAPhaseWithoutOpenRuns) {
  Json object = many_runs_json();
  object["status"] = json(R"json({"phase": "Suspended", "attempt": 9,
      "startTime": "2026-01-02T03:04:05Z", "runs": [{"index": 2, "attempt": 5}]})json");
  ASSERT_EQ(read_back(object).runs.size(), 1u);
  EXPECT_EQ(read_back(object).runs[0].next_attempt_time, parse_time("2026-01-02T03:04:05Z"));
  object["status"]["phase"] = "Failed";
  EXPECT_TRUE(read_back(object).runs.empty());
}

TEST(JobCodec, ARunningJobOfManyRunsMayHaveNone) {
  Json object = many_runs_json();
  object["status"] = json(R"json({"phase": "Running", "attempt": 9})json");
  EXPECT_TRUE(read_back(object).runs.empty());
}

TEST(JobCodec, ARunThatTheJobHasNotOrThatHasNoAttemptIsNotOnRecord) {
  Json object = many_runs_json();
  const Json in_time = {{"index", 2}, {"attempt", 3}};
  object["status"] = {{"phase", "Running"}, {"attempt", 9}, {"runs", Json::array({in_time})}};
  ASSERT_EQ(read_back(object).runs.size(), 1u);
  const std::int64_t beyond = object["spec"]["completions"].get<std::int64_t>();
  for (const Json& forged :
       {Json{{"index", beyond}, {"attempt", 4}},
        Json{{"index", std::numeric_limits<std::int64_t>::max()}, {"attempt", 4}},
        Json{{"index", -1}, {"attempt", 4}}, Json{{"index", 3}, {"attempt", 0}}}) {
    object["status"]["runs"] = Json::array({in_time, forged});
    EXPECT_EQ(read_back(object).runs.size(), 1u) << forged;
  }
}

// `completions` may fall while a job is suspended, and what its other runs began may still run.
TEST(JobCodec, AJobReducedToOneRunKeepsRunZeroAlone) {
  Json object = many_runs_json();
  object["spec"]["completions"] = object["spec"]["parallelism"] = 1;
  object["status"] = json(R"json({"phase": "Suspended", "attempt": 9,
      "startTime": "2026-01-02T03:04:05Z", "runs": [
      {"index": 0, "attempt": 2, "failures": 1, "nextAttemptTime": "2026-01-02T03:04:05Z"},
      {"index": 3, "attempt": 9, "failures": 4, "nextAttemptTime": "2026-01-02T03:04:05Z"},
      {"index": 999999, "attempt": 1, "nextAttemptTime": "2026-01-02T03:04:05Z"}]})json");
  ASSERT_EQ(read_back(object).runs.size(), 2u) << "the job forgets run 3 once nothing of it runs";
  EXPECT_EQ(read_back(object).runs[1].index, 3);
  object["status"]["phase"] = "Pending";
  ASSERT_EQ(read_back(object).runs.size(), 1u);
  EXPECT_EQ(read_back(object).runs[0].index, 0);
  EXPECT_EQ(read_back(object).runs[0].attempt, 2);
  EXPECT_EQ(read_back(object).runs[0].failures, 1);
}

TEST(JobCodec, ACompletedRunSurvivesOneRunAndBack) {
  Json object = many_runs_json();
  object["spec"]["completions"] = 1;
  object["status"] = json(R"json({"phase": "Suspended", "attempt": 9, "succeeded": 2,
      "completedIndexes": "0,3"})json");
  reconciler::Spec one = decode_spec(document(object["spec"]));
  object["status"] = encode_status(one, read_back(object));
  EXPECT_EQ(object["status"]["completions"], "1/1");
  object["spec"]["completions"] = 5;
  EXPECT_EQ(read_back(object).completed.text(), "0");
}

TEST(JobCodec, AnEditedJobWithOneRunThatHasSucceededHasNoRunLeft) {
  Json object = job_json();
  object["status"] = {{"phase", "Running"}, {"attempt", 1}, {"succeeded", 1}};
  EXPECT_TRUE(read_back(object).runs.empty());
  object["status"]["succeeded"] = 0;
  EXPECT_EQ(read_back(object).runs.size(), 1u);
}

TEST(JobCodec, TheSizeOfAJobOfManyRunsIsKnown) {
  Json object = many_runs_json();
  object["status"] = encode_status(many_runs(), status_of_many());
  const auto size = [](const Json& of) {
    return static_cast<const CachedJob&>(*decode_job(document(of))).job.stored_bytes;
  };
  EXPECT_EQ(size(object), object.dump().size());
  object["spec"].erase("completions");
  EXPECT_EQ(size(object), 0u) << "nobody asks";
}

// As the schema's default has it.
TEST(JobCodec, AStatusThatNobodyHasWrittenIsThatOfANewJob) {
  const char* const text = R"json({"phase": "Pending", "observedGeneration": 0, "attempt": 0,
      "waiting": {"reason": "OperatorAwaited", "message": "m", "nextAction": "n"}})json";
  const reconciler::Status status = decode_status({}, document(text));
  EXPECT_EQ(status, reconciler::Status());
}

TEST(JobCodec, TheStatusUpdateCarriesTheUidAndTheVersionThatWereRead) {
  const kube::ObjectPtr object = decode_job(document(job_json()));
  const Json body = json(
      status_update_body(static_cast<const CachedJob&>(*object).job, {"", "{}"}, full_status()));
  EXPECT_EQ(body["metadata"]["uid"], "u-1");
  EXPECT_EQ(body["metadata"]["resourceVersion"], "17");
  EXPECT_EQ(body["metadata"]["name"], "encode");
  EXPECT_FALSE(body.contains("spec"));
}

TEST(JobCodec, TheStatusUpdateRepeatsWhatOthersWroteIntoTheMetadata) {
  const Json shared = json(R"({
    "labels": {"app": "x"}, "annotations": {"note": "quote \" and \n"}, "finalizers": ["a/b"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "cu"}]})");
  Json object = job_json();
  object["metadata"].update(shared);
  object["metadata"]["managedFields"] = Json::array({{{"manager", "helm"}}});
  const kube::ObjectPtr cached = decode_job(document(object));
  const auto& job = static_cast<const CachedJob&>(*cached);
  const Json body = json(status_update_body(job.job, *job.texts, full_status()));
  for (const auto& [key, value] : shared.items()) EXPECT_EQ(body["metadata"][key], value) << key;
  EXPECT_FALSE(body["metadata"].contains("managedFields")) << "that would be a change of its own";
  EXPECT_FALSE(body["metadata"].contains("generation"));
}

bool keeps_texts(const Json& object) {
  return static_cast<const CachedJob&>(*decode_job(document(object))).texts.has_value();
}

TEST(JobCodec, AFinishedJobKeepsNoTextsInMemory) {
  EXPECT_TRUE(keeps_texts(job_json()));
  Json finished = job_json();
  finished["status"] = {{"phase", "Succeeded"}};
  EXPECT_FALSE(keeps_texts(finished));
}

TEST(JobCodec, AFinishedJobsStatusIsWrittenBackWithWhatWasDecided) {
  Json finished = job_json();
  finished["status"] = json(R"({"phase": "Failed", "history": [
    {"attempt": 1, "outcome": "Failed", "message": "line 1\nline 2"}],
    "outbox": [{"number": 1, "event": "Failed", "time": "2026-01-02T03:04:05Z", "targets": ["t"]}],
    "conditions": [{"type": "Failed", "status": "True", "reason": "Old",
                    "lastTransitionTime": "2026-01-02T03:04:05Z"}]})");
  const JobTexts texts = decode_texts(document(finished));
  ASSERT_TRUE(texts.finished);
  reconciler::Status decided;
  decided.observed_generation = 9;
  const Time later = *parse_time("2026-01-02T03:09:05Z");
  decided.conditions = {{"Failed", true, "New", "", later}, {"Other", true, "R", "", later}};
  const reconciler::Status written = finished_status(texts.finished->status, decided);
  EXPECT_EQ(written.phase, Phase::kFailed);
  EXPECT_EQ(written.history.at(0).message, "line 1\nline 2");
  EXPECT_EQ(written.observed_generation, 9);
  EXPECT_TRUE(written.outbox.empty());
  ASSERT_EQ(written.conditions.size(), 2U);
  EXPECT_EQ(written.conditions[0].reason, "New");
  EXPECT_EQ(written.conditions[0].last_transition_time, parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(written.conditions[1].type, "Other");
  finished["status"]["phase"] = "Running";
  EXPECT_FALSE(decode_texts(document(finished)).finished);
}

TEST(JobCodec, AFinishedJobsConditionsStayWithinTheirLimit) {
  reconciler::Status now;
  for (int i = 0; i < 16; ++i) {
    now.conditions.push_back({"example.com/" + std::to_string(i), true, "R", "", Time{}});
  }
  reconciler::Status decided;
  decided.conditions = {{"NotificationFailed", true, "NotDelivered", "", Time{}}};
  const reconciler::Status written = finished_status(now, decided);
  EXPECT_EQ(written.conditions.size(), 16U);
  EXPECT_NE(written.condition("NotificationFailed"), nullptr);
}

TEST(JobCodec, ASettledJobKeepsWhatItsBatchV1JobReports) {
  Json job = job_json();
  job["metadata"]["annotations"][reconciler::kBatchJobAnnotation] = "fields-template";
  const JobPtr of_lane = decode_job(document(job));
  ASSERT_TRUE(of_lane->texts);
  reconciler::Status status = of_lane->job.status;
  status.conditions = {{"FailureTarget", true, "DeadlineExceeded", "out of time", Time{}}};
  const auto kept = [&](const CachedJob& of) {
    const auto whole = kube::as<CachedJob>(kube::whole(settled_job(of, status, 18)));
    EXPECT_EQ(whole->version, 18U);
    EXPECT_FALSE(whole->texts) << "as of each finished job";
    return whole->job.status.condition("FailureTarget") != nullptr;
  };
  EXPECT_TRUE(kept(*of_lane));
  EXPECT_FALSE(kept(*decode_job(document(job_json())))) << "nobody reads them";
}

TEST(JobCodec, TheRecordOfABatchV1JobIsBounded) {
  Json job = job_json();
  job["metadata"]["annotations"][reconciler::kBatchJobAnnotation] = std::string(100'000, 'x');
  EXPECT_EQ(static_cast<const CachedJob&>(*decode_job(document(job))).source, "");
}

TEST(JobCodec, NoJobKeepsMoreTextThanItsShare) {
  Json large = job_json();
  large["spec"]["template"]["metadata"]["annotations"]["note"] = std::string(kMaxCachedTexts, 'x');
  EXPECT_FALSE(keeps_texts(large)) << "by its template";
  large = job_json();
  large["metadata"]["annotations"]["note"] = std::string(kMaxCachedTexts, 'x');
  EXPECT_FALSE(keeps_texts(large)) << "by its metadata";
}

TEST(JobCodec, WhatIsNoJobIsLeftOut) {
  EXPECT_FALSE(decode_job(document(json(R"({"metadata": {"name": "x"}})"))));
  EXPECT_FALSE(decode_job(document(Json())));
}

Json made_pod() {
  const kube::ObjectPtr object = decode_job(document(job_json()));
  const auto& cached = static_cast<const CachedJob&>(*object);
  const Result<std::string> body = injection::pod_body(cached.job, cached.texts->pod_template,
                                                       {3, "encode-3-abcde"}, "", "7-of-32");
  return json(*body);
}

TEST(PodBody, CarriesNameOwnerFinalizerAndLabels) {
  const Json pod = made_pod();
  const Json& meta = pod["metadata"];
  EXPECT_EQ(meta["name"], "encode-3-abcde");
  EXPECT_EQ(meta["namespace"], "media");
  EXPECT_EQ(meta["finalizers"], Json::array({"holdfast.dev/outcome"}));
  ASSERT_EQ(meta["ownerReferences"].size(), 1u);
  EXPECT_EQ(meta["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(meta["ownerReferences"][0]["controller"], true);
  EXPECT_FALSE(meta["ownerReferences"][0].contains("blockOwnerDeletion"));
  EXPECT_EQ(meta["labels"]["holdfast.dev/job-name"], "encode");
  EXPECT_EQ(meta["labels"]["holdfast.dev/job-uid"], "u-1");
}

// As batch/v1 does: the rest of a template's metadata means nothing for its pods.
TEST(PodBody, OfATemplatesMetadataThePodGetsLabelsAnnotationsAndFinalizersAlone) {
  const kube::ObjectPtr object = decode_job(document(job_json()));
  const auto& cached = static_cast<const CachedJob&>(*object);
  Json given = json(cached.texts->pod_template);
  given["metadata"].update(
      json(R"({"name": "n", "generateName": "g-", "namespace": "elsewhere", "uid": "w",
      "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "v"}],
      "finalizers": ["example.com/a", "example.com/a", "holdfast.dev/own"]})"));
  const Json meta = json(*injection::pod_body(cached.job, given.dump(), {3, "encode-3-abcde"}, "",
                                              "7-of-32"))["metadata"];
  EXPECT_EQ(meta["name"], "encode-3-abcde");
  EXPECT_EQ(meta["namespace"], "media");
  EXPECT_FALSE(meta.contains("generateName") || meta.contains("uid"));
  EXPECT_EQ(meta["ownerReferences"][0]["uid"], "u-1");
  EXPECT_EQ(meta["finalizers"], Json::array({"example.com/a", "holdfast.dev/outcome"}));
}

TEST(PodBody, TheTemplatesOwnLabelsStayAndThoseOfOurPrefixGiveWay) {
  const Json pod = made_pod();
  EXPECT_EQ(pod["metadata"]["labels"]["app"], "x");
  EXPECT_EQ(pod["metadata"]["labels"]["holdfast.dev/attempt"], "3");
  EXPECT_EQ(pod["metadata"]["annotations"], Json({{"a", "b"}}));
}

TEST(PodBody, EveryContainerKnowsItsAttemptBeforeItsOwnVariables) {
  const Json pod = made_pod();
  for (const char* list : {"initContainers", "containers"}) {
    const Json& env = pod["spec"][list][0]["env"];
    ASSERT_GE(env.size(), 3u);
    EXPECT_EQ(env[0], Json({{"name", "HOLDFAST_JOB_NAME"}, {"value", "encode"}}));
    EXPECT_EQ(env[1], Json({{"name", "HOLDFAST_JOB_UID"}, {"value", "u-1"}}));
    EXPECT_EQ(env[2], Json({{"name", "HOLDFAST_ATTEMPT"}, {"value", "3"}}));
  }
  const Json& env = pod["spec"]["containers"][0]["env"];
  ASSERT_EQ(env.size(), 4u) << "the template's HOLDFAST_ATTEMPT gives way";
  EXPECT_EQ(env[3]["name"], "URL");
}

TEST(PodBody, NothingElseIsAddedToTheTemplate) {
  Json spec = made_pod()["spec"];
  for (const char* list : {"initContainers", "containers"}) {
    for (Json& container : spec[list]) {
      container.erase("env");
      EXPECT_EQ(container["terminationMessagePolicy"], "FallbackToLogsOnError");
      container.erase("terminationMessagePolicy");
    }
  }
  EXPECT_EQ(spec, json(R"({"initContainers": [{"name": "i"}], "containers": [{"name": "main"}],
                           "restartPolicy": "Never"})"));
}

Json made_indexed_pod(const char* environment = "[]") {
  Json object = many_runs_json();
  Json& pod = object["spec"]["template"]["spec"];
  pod["containers"][0]["env"] = json(environment);
  const kube::ObjectPtr decoded = decode_job(document(object));
  const auto& cached = static_cast<const CachedJob&>(*decoded);
  reconciler::CreatePod create{3, "encode-3-abcde"};
  create.run = 4;
  return json(*injection::pod_body(cached.job, cached.texts->pod_template, create, "", "7-of-32"));
}

TEST(PodBody, AnIndexedPodSaysItsIndexAsBatchV1Does) {
  const Json pod =
      made_indexed_pod(R"json([{"name": "OUT", "value": "/$(JOB_COMPLETION_INDEX)"}])json");
  const char* const key = "batch.kubernetes.io/job-completion-index";
  EXPECT_EQ(pod["metadata"]["labels"][key], "4");
  EXPECT_EQ(pod["metadata"]["annotations"][key], "4");
  EXPECT_EQ(pod["spec"]["hostname"], "encode-4");
  const Json index = {{"name", "JOB_COMPLETION_INDEX"}, {"value", "4"}};
  for (const char* list : {"initContainers", "containers"}) {
    EXPECT_EQ(pod["spec"][list][0]["env"][3], index) << "before the template's own variables";
  }
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][4]["name"], "OUT");
}

TEST(PodBody, ATemplatesOwnIndexVariableStays) {
  const Json pod = made_indexed_pod(R"([{"name": "A", "value": "1"},
                                        {"name": "JOB_COMPLETION_INDEX", "value": "mine"},
                                        {"name": "JOB_COMPLETION_INDEX", "value": "again"}])");
  const Json& env = pod["spec"]["containers"][0]["env"];
  ASSERT_EQ(env.size(), 6u);
  EXPECT_EQ(env[3]["name"], "A");
  EXPECT_EQ(env[4]["value"], "mine");
}

TEST(PodBody, ATemplatesOwnHostnameStays) {
  Json object = many_runs_json();
  object["spec"]["template"]["spec"]["hostname"] = "mine";
  const kube::ObjectPtr decoded = decode_job(document(object));
  const auto& cached = static_cast<const CachedJob&>(*decoded);
  const Json pod =
      json(*injection::pod_body(cached.job, cached.texts->pod_template, {3, "p"}, "", "7-of-32"));
  EXPECT_EQ(pod["spec"]["hostname"], "mine");
}

Json pod_with_conditions(const char* phase, std::size_t count) {
  Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})");
  pod["status"]["phase"] = phase;
  pod["status"]["conditions"] = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    pod["status"]["conditions"].push_back(
        {{"type", "T\n" + std::to_string(i)}, {"status", "False"}});
  }
  return pod;
}

TEST(PodDecode, AFailedPodKeepsItsConditions) {
  const auto conditions = [](const Json& pod) {
    return static_cast<const CachedPod&>(*decode_pod(document(pod))).pod.conditions;
  };
  const auto kept = conditions(pod_with_conditions("Failed", 2));
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].type, "T 1") << "on one line";
  EXPECT_EQ(kept[1].status, "False");
  EXPECT_EQ(conditions(pod_with_conditions("Failed", 100)).size(), 32u);
  EXPECT_TRUE(conditions(pod_with_conditions("Running", 2)).empty());
  EXPECT_TRUE(conditions(pod_with_conditions("Succeeded", 2)).empty());
}

TEST(PodDecode, ReadsWhatTheVerdictHangsOn) {
  const Json pod = json(R"({
    "metadata": {"name": "p", "namespace": "media", "uid": "pu", "resourceVersion": "9",
      "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:35Z",
      "deletionGracePeriodSeconds": 30, "finalizers": ["a", "holdfast.dev/outcome"],
      "labels": {"holdfast.dev/job-uid": "u-1", "holdfast.dev/attempt": "3",
                 "holdfast.dev/job-name": "other"},
      "ownerReferences": [{"apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
                           "name": "encode", "uid": "u-1", "controller": true}]},
    "spec": {"nodeName": "node-1", "initContainers": [{"name": "side", "restartPolicy": "Always"}]},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory",
      "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
                     {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                      "message": "0/3 nodes"}],
      "initContainerStatuses": [{"name": "side", "state": {"terminated": {"exitCode": 143}}}],
      "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 137,
        "reason": "OOMKilled", "startedAt": "2026-01-02T03:04:10Z",
        "finishedAt": "2026-01-02T03:05:10Z"}}}]}})");
  const kube::ObjectPtr object = decode_pod(document(pod));
  ASSERT_TRUE(object);
  const auto& cached = static_cast<const CachedPod&>(*object);
  EXPECT_EQ(cached.job_name, "encode") << "the owner's name, not the label's";
  EXPECT_EQ(cached.job_uid(), "u-1");
  EXPECT_EQ(cached.pod.attempt, 3);
  EXPECT_EQ(cached.pod.phase, PodPhase::kFailed);
  EXPECT_EQ(cached.pod.deletion, parse_time("2026-01-02T03:05:35Z"));
  EXPECT_EQ(cached.pod.deletion_grace, seconds(30));
  EXPECT_TRUE(cached.pod.has_finalizer);
  EXPECT_TRUE(cached.pod.disruption_target);
  EXPECT_EQ(cached.pod.unschedulable, "") << "it has a node";
  ASSERT_EQ(cached.pod.containers.size(), 2u);
  EXPECT_TRUE(cached.pod.containers[0].sidecar);
  EXPECT_EQ(cached.pod.containers[1].terminated->exit_code, 137);
  EXPECT_TRUE(cached.pod.started());
  EXPECT_EQ(cached.pod.start(), parse_time("2026-01-02T03:04:10Z"));
}

// The container of a pod in this state; `pod`: more of the pod's status.
reconciler::PodView in_state(const Json& state, const Json& pod = Json::object()) {
  Json status = {{"containerStatuses", Json::array({{{"name", "main"}, {"state", state}}})}};
  status.update(pod);
  const Json object = {{"metadata", {{"name", "p"}, {"uid", "u"}, {"resourceVersion", "1"}}},
                       {"status", status}};
  return static_cast<const CachedPod&>(*decode_pod(document(object))).pod;
}

TEST(PodDecode, KnowsWhatTheKubeletsReasonsMean) {
  const auto ended = [](const char* reason, int exit_code) {
    const Json state = {{"terminated", {{"reason", reason}, {"exitCode", exit_code}}}};
    return *in_state(state).containers[0].terminated;
  };
  EXPECT_FALSE(ended("ContainerStatusUnknown", 137).was_seen);
  EXPECT_FALSE(ended("Unknown", 255).was_seen);
  EXPECT_TRUE(ended("Unknown", 1).was_seen);
  EXPECT_TRUE(ended("Error", 255).was_seen);
  EXPECT_TRUE(ended("OOMKilled", 137).out_of_memory);
  EXPECT_FALSE(ended("Error", 137).out_of_memory);

  const auto waits = [](const char* reason) {
    return in_state({{"waiting", {{"reason", reason}}}}).containers[0].being_created;
  };
  EXPECT_TRUE(waits("ContainerCreating"));
  EXPECT_TRUE(waits("PodInitializing"));
  EXPECT_FALSE(waits("ImagePullBackOff"));
  EXPECT_FALSE(waits(""));

  const Json running = {{"running", Json::object()}};
  EXPECT_TRUE(in_state(running, {{"reason", "DeadlineExceeded"}}).out_of_time);
  EXPECT_FALSE(in_state(running, {{"reason", "Evicted"}}).out_of_time);
}

// The API server lets nobody but the operator name a DurableJob; other kinds anybody may name.
TEST(PodDecode, TheJobsUidBesideAnotherKindMakesNoOwner) {
  for (const auto& [version, kind] : {std::pair("v1", "ConfigMap"), std::pair("v1", "DurableJob"),
                                      std::pair("holdfast.dev.evil/v1", "DurableJob"),
                                      std::pair("holdfast.dev/v1alpha1", "JobQueue")}) {
    const Json pod = {{"metadata",
                       {{"name", "p"},
                        {"uid", "u"},
                        {"resourceVersion", "1"},
                        {"ownerReferences", Json::array({{{"apiVersion", version},
                                                          {"kind", kind},
                                                          {"name", "encode"},
                                                          {"uid", "u-1"},
                                                          {"controller", true}}})}}}};
    const kube::ObjectPtr object = decode_pod(document(pod));
    ASSERT_TRUE(object);
    EXPECT_NE(static_cast<const CachedPod&>(*object).pod.owner_uid, "u-1") << version << kind;
    EXPECT_NE(static_cast<const CachedPod&>(*object).pod.owner_uid, "") << "it has an owner";
  }
}

TEST(PodBody, ATemplatesOwnPolicyOfTerminationMessagesStays) {
  Json object = job_json();
  Json& spec = object["spec"]["template"]["spec"];
  spec["containers"][0]["terminationMessagePolicy"] = "File";
  const kube::ObjectPtr decoded = decode_job(document(object));
  const auto& cached = static_cast<const CachedJob&>(*decoded);
  const Json pod =
      json(*injection::pod_body(cached.job, cached.texts->pod_template, {3, "p"}, "", "7-of-32"));
  EXPECT_EQ(pod["spec"]["containers"][0]["terminationMessagePolicy"], "File");
}

TEST(PodDecode, TheLastLinesOfAFailedContainerStayUntilItsEndIsOnRecord) {
  std::string said;
  for (int i = 0; i < 1000; ++i) said += "line " + std::to_string(i) + "\n";
  const auto message = [&](int exit_code, bool is_open, const std::string& text) {
    Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})");
    if (is_open) pod["metadata"]["finalizers"] = Json::array({"holdfast.dev/outcome"});
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "main"},
                      {"state", {{"terminated", {{"exitCode", exit_code}, {"message", text}}}}}}});
    return static_cast<const CachedPod&>(*decode_pod(document(pod)))
        .pod.containers[0]
        .terminated->message;
  };
  const std::string open = message(1, true, said);
  EXPECT_LE(open.size(), 2048u);
  EXPECT_GT(open.size(), 2000u);
  EXPECT_EQ(open.rfind("\nline 998\nline 999"), open.size() - 18);
  const std::string cut = message(1, true, said.substr(said.size() - 2048));
  EXPECT_EQ(cut.rfind("line ", 0), 0u) << "the kubelet cuts in the middle of a line: " << cut;
  EXPECT_LE(message(1, false, said).size(), 512u);
  EXPECT_EQ(message(0, true, said).rfind("line 0 line 1 ", 0), 0u)
      << "a result begins at its begin";
  EXPECT_EQ(message(85, true, "holdfast: fenced: " + said).rfind("holdfast: fenced: line 0", 0),
            0u);
}

TEST(PodDecode, WhatTenantsSayIsOneBoundedLine) {
  const std::string said = "a\nb\x1b[1m" + std::string(1000, 'x');
  const Json pod = {
      {"metadata", {{"name", "p"}, {"uid", "u"}, {"resourceVersion", "1"}}},
      {"status",
       {{"message", said},
        {"reason", said},
        {"conditions",
         Json::array({{{"type", "PodScheduled"},
                       {"status", "False"},
                       {"reason", "Unschedulable"},
                       {"message", said}},
                      {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", said}}})},
        {"containerStatuses",
         Json::array(
             {{{"name", "ended"},
               {"state", {{"terminated", {{"exitCode", 1}, {"reason", said}, {"message", said}}}}}},
              {{"name", "waits"},
               {"state", {{"waiting", {{"reason", said}, {"message", said}}}}}}})}}}};
  const reconciler::PodView view = static_cast<const CachedPod&>(*decode_pod(document(pod))).pod;
  for (const std::string& text :
       {view.message, view.reason, view.unschedulable, view.disruption_reason,
        view.containers[0].terminated->reason, view.containers[1].waiting_message,
        view.containers[1].waiting_reason}) {
    EXPECT_EQ(text.substr(0, 8), "a b [1mx");
    EXPECT_EQ(text.size(), 512u);
  }
}

// With PodScheduled like this.
reconciler::PodView scheduled(const char* spec, const char* condition) {
  Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})");
  pod["spec"] = json(spec);
  pod["status"]["conditions"] = Json::array({json(condition)});
  pod["status"]["conditions"][0]["type"] = "PodScheduled";
  return static_cast<const CachedPod&>(*decode_pod(document(pod))).pod;
}

TEST(PodDecode, ReadsWhereAPodStandsWithTheSchedulers) {
  using reconciler::Placement;
  const Time then = *parse_time("2026-01-02T03:04:05Z");
  const char* const gated_condition =
      R"({"status": "False", "reason": "SchedulingGated", "message": "blocked", "lastTransitionTime": null})";
  reconciler::PodView pod =
      scheduled(R"({"schedulingGates": [{"name": "a"}, {"name": "b"}]})", gated_condition);
  EXPECT_EQ(pod.placement(), Placement::kGated);
  EXPECT_EQ(pod.gates, "a, b");
  EXPECT_EQ(pod.unschedulable, "blocked");
  EXPECT_FALSE(pod.placed);
  pod = scheduled(R"({"schedulerName": "mine"})", gated_condition);
  EXPECT_EQ(pod.placement(), Placement::kUnseen) << "its gates were just removed";
  EXPECT_EQ(pod.scheduler, "mine");
  pod = scheduled("{}", R"({"status": "False", "reason": "Unschedulable", "message": "0/3 nodes",
                            "lastTransitionTime": "2026-01-02T03:04:05Z"})");
  EXPECT_EQ(pod.placement(), Placement::kUnschedulable);
  EXPECT_EQ(pod.unschedulable, "0/3 nodes");
  EXPECT_EQ(pod.placed, then);
  pod = scheduled("{}", R"({"status": "False", "reason": "SchedulerError"})");
  EXPECT_EQ(pod.placement(), Placement::kUnschedulable);
  EXPECT_EQ(pod.unschedulable, "SchedulerError");
  pod = scheduled(R"({"nodeName": "n"})",
                  R"({"status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"})");
  EXPECT_EQ(pod.placement(), Placement::kBound);
  EXPECT_EQ(pod.placed, then);
}

const CachedPod& decoded(const Json& pod) {
  static kube::ObjectPtr last;
  last = decode_pod(document(pod));
  return static_cast<const CachedPod&>(*last);
}

TEST(PodDecode, WithoutAnOwnerTheJobsNameIsReadFromThePodsOwnNameAndNotFromALabel) {
  const std::string name = reconciler::pod_name("my-job", "u-1", 12);
  Json pod = json(R"({"metadata": {"uid": "u", "resourceVersion": "1", "labels": {}}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["labels"] = {{"holdfast.dev/job-uid", "u-1"}};
  EXPECT_EQ(decoded(pod).job_name, "my-job");
  pod["metadata"]["labels"]["holdfast.dev/job-name"] = "another";
  EXPECT_EQ(decoded(pod).job_name, "my-job");
  pod["metadata"]["name"] = "my-own-pod";
  EXPECT_EQ(decoded(pod).job_name, "another");
  pod["metadata"]["labels"].erase("holdfast.dev/job-name");
  EXPECT_EQ(decoded(pod).job_name, "") << "nothing says whose it is";
  for (const char* odd : {"x", "-", "--", "a-1", "-1-bcdfg", "1-bcdfg"}) {
    pod["metadata"]["name"] = odd;
    EXPECT_EQ(decoded(pod).job_name, "") << odd;
  }
}

TEST(PodDecode, APodWithoutAnOwnerNamesNoJobThatIsNotThere) {
  Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1",
                                   "labels": {"holdfast.dev/job-uid": "u-1"}}})");
  EXPECT_TRUE(decoded(pod).names("u-1"));
  EXPECT_FALSE(decoded(pod).names(""));
}

TEST(PodDecode, AContainerMayRestartWhereItsOwnPolicyOrARuleOrThePodsPolicySaysSo) {
  const auto may_restart = [](const char* pod_policy, const std::string& container) {
    Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"},
                        "status": {"containerStatuses": [{"name": "main"}]}})");
    pod["spec"]["restartPolicy"] = pod_policy;
    pod["spec"]["containers"] = Json::array({json(container)});
    return decoded(pod).pod.containers.at(0).may_restart;
  };
  EXPECT_FALSE(may_restart("Never", R"({"name": "main"})"));
  EXPECT_FALSE(may_restart("Always", R"({"name": "main", "restartPolicy": "Never"})"));
  EXPECT_FALSE(may_restart("Never", R"({"name": "main", "restartPolicyRules": []})"));
  EXPECT_TRUE(may_restart("OnFailure", R"({"name": "main"})"));
  EXPECT_TRUE(may_restart("Never", R"({"name": "main", "restartPolicy": "Always"})"));
  EXPECT_TRUE(may_restart("Never", R"({"name": "main", "restartPolicy": "Never",
      "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]})"));
}

TEST(PodBody, TheMarkOfTheIntentIsReadBackAndATemplatesOwnIsNot) {
  const kube::ObjectPtr object = decode_job(document(job_json()));
  const auto& cached = static_cast<const CachedJob&>(*object);
  reconciler::CreatePod create{3, "encode-3-abcde"};
  create.intent = *parse_time("2026-01-02T03:04:05Z") + std::chrono::nanoseconds(123'004'711);
  Json given = json(cached.texts->pod_template);
  given["metadata"]["annotations"]["holdfast.dev/intent"] = "2026-01-02T03:04:05Z";
  Json pod = json(*injection::pod_body(cached.job, given.dump(), create, "", "7-of-32"));
  pod["metadata"]["uid"] = "u";
  pod["metadata"]["resourceVersion"] = "1";
  EXPECT_EQ(decoded(pod).pod.intent, create.intent);
  const Json bare = json(injection::bare_template_body(pod.dump()));
  EXPECT_EQ(bare["kind"], "PodTemplate");
  EXPECT_EQ(bare["template"]["spec"], pod["spec"]);
  EXPECT_EQ(bare["template"]["metadata"]["labels"], pod["metadata"]["labels"]);
  EXPECT_FALSE(bare["template"]["metadata"].contains("ownerReferences"));
}

TEST(PodDecode, AnAttemptLabelThatIsNoNumberIsNone) {
  for (const char* label : {"", "x", "-1", "1x", "0", "99999999999999999999"}) {
    Json pod = json(R"({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})");
    pod["metadata"]["labels"]["holdfast.dev/attempt"] = label;
    EXPECT_EQ(static_cast<const CachedPod&>(*decode_pod(document(pod))).pod.attempt, 0) << label;
  }
}

}  // namespace
}  // namespace holdfast::codecs
