// Jobs and pods at rest cost few bytes in the caches, and nobody decides otherwise because of it.
#include "operator/codecs/at_rest.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "client/cache/store_update.h"
#include "client/kube/packed.h"
#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/support/json_document.h"

namespace {

// Of the whole program, which has one thread.
std::ptrdiff_t allocated = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* const place = std::malloc(size);
  if (!place) throw std::bad_alloc();
  allocated += static_cast<std::ptrdiff_t>(malloc_usable_size(place));
  return place;
}
void operator delete(void* place) noexcept {
  if (place) allocated -= static_cast<std::ptrdiff_t>(malloc_usable_size(place));
  std::free(place);
}
void operator delete(void* place, std::size_t) noexcept { operator delete(place); }

namespace holdfast::codecs {
namespace {

using std::chrono::seconds;

Json json(const std::string& text) { return *parse_json(text); }

std::string uid(int number) {
  return "9f0c2d6e-4a51-4c3b-8d27-" + std::to_string(100'000'000'000 + number);
}

Json finished_job(int number) {
  Json job = json(R"json({
    "apiVersion": "holdfast.dev/v1alpha1", "kind": "DurableJob",
    "metadata": {"namespace": "encoding", "resourceVersion": "17", "generation": 2,
                 "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"team": "encoders"}},
    "spec": {"ttlSecondsAfterFinished": 3600, "lostAfterSeconds": 15,
             "template": {"spec": {"containers": [{"name": "main", "image": "busybox:1.36"}]}}},
    "status": {"phase": "Failed", "attempt": 2, "failures": 2, "observedGeneration": 2,
               "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T03:05:00Z",
               "history": [
      {"attempt": 1, "nodeName": "node-1", "outcome": "Lost", "reason": "NodeSilent",
       "startTime": "2026-01-02T03:04:06Z", "endTime": "2026-01-02T03:04:46Z"},
      {"attempt": 2, "nodeName": "node-2", "outcome": "Failed", "reason": "Error", "exitCode": 3}],
               "conditions": [
      {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
       "lastTransitionTime": "2026-01-02T03:05:00Z"},
      {"type": "Reconciling", "status": "False", "reason": "Failed", "message": "",
       "lastTransitionTime": "2026-01-02T03:05:00Z"}]}})json");
  const std::string name = "encode-film-" + std::to_string(1'000'000 + number);
  job["metadata"]["name"] = name;
  job["metadata"]["uid"] = uid(number);
  for (Json& entry : job["status"]["history"]) {
    entry["podName"] = reconciler::pod_name(name, uid(number), entry["attempt"]);
    entry["podUID"] = uid(number + static_cast<int>(entry["attempt"]) * 10'000'000);
    entry["message"] = std::string(2000, 'm');
  }
  job["status"]["conditions"][0]["message"] = std::string(500, 'c');
  return job;
}

Json settled_pod(int number) {
  Json pod = json(R"json({
    "metadata": {"namespace": "encoding", "resourceVersion": "18",
                 "creationTimestamp": "2026-01-02T03:04:50Z",
                 "labels": {"holdfast.dev/attempt": "2"},
                 "annotations": {"holdfast.dev/intent": "2026-01-02T03:04:46.123456789Z"}},
    "spec": {"nodeName": "node-2", "restartPolicy": "Never", "containers": [{"name": "main"}]},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory",
               "conditions": [
      {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"},
      {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:51Z"}],
               "containerStatuses": [{"name": "main", "state": {"terminated": {
      "exitCode": 3, "reason": "Error", "message": "no such film",
      "startedAt": "2026-01-02T03:04:52Z", "finishedAt": "2026-01-02T03:04:59Z"}}}]}})json");
  const std::string job = "encode-film-" + std::to_string(1'000'000 + number);
  pod["metadata"]["name"] = reconciler::pod_name(job, uid(number), 2);
  pod["metadata"]["uid"] = uid(number + 20'000'000);
  pod["metadata"]["labels"][reconciler::kJobUidLabel] = uid(number);
  pod["metadata"]["labels"][reconciler::kJobNameLabel] = job;
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", reconciler::kJobApiVersion},
                                                     {"kind", reconciler::kJobKind},
                                                     {"name", job},
                                                     {"uid", uid(number)},
                                                     {"controller", true}}});
  return pod;
}

bool is_packed(const kube::ObjectPtr& object) {
  return dynamic_cast<const kube::PackedObject*>(object.get()) != nullptr;
}

const CachedJob& as_job(const kube::ObjectPtr& object) {
  return static_cast<const CachedJob&>(*object);
}

// What a write does, as the API server would see it.
struct Reported {
  const reconciler::Job& whole;
  std::string operator()(const reconciler::WriteStatus& write) const {
    return "status " +
           status_update_body(whole, {"", "{}"}, finished_status(whole.status, write.status));
  }
  std::string operator()(const reconciler::DeletePod& write) const { return "delete " + write.uid; }
  std::string operator()(const reconciler::ReleasePod& w) const { return "release " + w.uid; }
  std::string operator()(const reconciler::RelabelPod& w) const { return "relabel " + w.uid; }
  std::string operator()(const reconciler::DeleteLease& write) const {
    return "lease " + write.uid;
  }
  std::string operator()(const reconciler::ReleaseJob&) const { return "release the job"; }
  std::string operator()(const reconciler::DeleteJob&) const { return "delete the job"; }
  std::string operator()(const auto&) const { return "a write that no finished job needs"; }
};

std::string decided(const Json& of, bool packs, const reconciler::JobView& seen, Time now) {
  const kube::ObjectPtr whole = decode_job(document(of));
  const kube::ObjectPtr cached = decode_cached_job(document(of));
  EXPECT_TRUE(is_packed(cached));
  reconciler::JobView view = seen;
  view.job = as_job(packs ? kube::whole(cached) : whole).job;
  const reconciler::Decision decision = reconciler::decide(view, now);
  std::string text = decision.confirm ? "look; " : "";
  if (decision.wake_after) text += std::to_string(decision.wake_after->count()) + "; ";
  for (const reconciler::Write& write : decision.writes) {
    text += std::visit(Reported{as_job(whole).job}, write) + "; ";
  }
  return text;
}

class Rest : public ::testing::Test {
 protected:
  // Returns what is decided.
  std::string same(const Json& of) {
    std::string all;
    for (const Time now : {ended_ + seconds(1), ended_ + std::chrono::hours(2)}) {
      const std::string whole = decided(of, false, view_, now);
      EXPECT_EQ(decided(of, true, view_, now), whole);
      all += whole;
    }
    return all;
  }
  void see(Json pod) {
    view_.pods.push_back(static_cast<const CachedPod&>(*decode_pod(document(pod))).pod);
  }

  const Time ended_ = *parse_time("2026-01-02T03:05:00Z");
  reconciler::JobView view_;
  Json job_ = finished_job(1);
};

TEST_F(Rest, AFinishedJobIsDeletedWhenItsTimeIsOver) {
  EXPECT_NE(same(job_).find("delete the job"), std::string::npos);
  job_["spec"].erase("ttlSecondsAfterFinished");
  EXPECT_EQ(same(job_), "");
}

TEST_F(Rest, AnEditIsObservedAndTheRestOfTheStatusIsWrittenBack) {
  job_["metadata"]["generation"] = 3;
  job_["spec"]["ttlSecondsAfterFinished"] = 100'000;
  const std::string reported = same(job_);
  EXPECT_NE(reported.find(R"("observedGeneration":3)"), std::string::npos) << reported;
  EXPECT_NE(reported.find(std::string(2000, 'm')), std::string::npos);
  EXPECT_NE(reported.find(std::string(500, 'c')), std::string::npos);
  EXPECT_NE(reported.find("2026-01-02T03:04:46Z"), std::string::npos);
}

TEST_F(Rest, PodsThatAreLeftAreStoppedAndReleased) {
  Json pod = settled_pod(1);
  pod["metadata"]["finalizers"] = Json::array({reconciler::kFinalizer});
  pod["status"] = {{"phase", "Running"}};
  see(pod);
  EXPECT_NE(same(job_).find("delete "), std::string::npos);
  // Somebody removed its owner: the history says that it was the job's.
  view_.pods.clear();
  pod["metadata"].erase("ownerReferences");
  see(pod);
  job_["spec"].erase("ttlSecondsAfterFinished");
  const std::string reported = same(job_);
  EXPECT_NE(reported.find("delete "), std::string::npos);
  EXPECT_NE(reported.find("release"), std::string::npos);
}

TEST_F(Rest, ADeletedJobLooksForItsLastPod) {
  job_["metadata"]["deletionTimestamp"] = "2026-01-02T03:06:00Z";
  EXPECT_NE(same(job_).find("look"), std::string::npos);
}

TEST_F(Rest, EventsThatTargetsHaveTakenLeaveTheOutbox) {
  job_["spec"].erase("ttlSecondsAfterFinished");
  job_["spec"]["notify"] = {"pager", "mail"};
  job_["status"]["notifications"] = 1;
  job_["status"]["outbox"] = json(R"([{"number": 1, "event": "Failed",
    "time": "2026-01-02T03:05:00Z", "reason": "BackoffLimitExceeded", "message": "m",
    "targets": ["pager", "mail"]}])");
  view_.observed.live_for = std::chrono::hours(1);
  using State = reconciler::TargetView::State;
  for (const char* const name : {"pager", "mail"}) {
    view_.observed.notify.targets[name] = {State::kKnown, {reconciler::NotifyEvent::kFailed}};
  }
  same(job_);
  job_["status"]["notifications"] = 2;
  job_["status"]["outbox"].push_back(json(R"({"number": 2, "event": "OfANewerVersion",
    "time": "2026-01-02T03:05:00Z", "targets": ["pager"]})"));
  same(job_);
  view_.observed.notify.deliveries = {
      {1, "pager", reconciler::DeliveryView::Result::kTaken, ""},
      {1, "mail", reconciler::DeliveryView::Result::kRefused, "410 Gone"}};
  const std::string reported = same(job_);
  EXPECT_NE(reported.find("did not take"), std::string::npos) << reported;
  EXPECT_NE(reported.find("OfANewerVersion"), std::string::npos) << reported;
  EXPECT_EQ(reported.find(R"("event":"Failed")"), std::string::npos) << reported;
  job_["status"]["conditions"].push_back(json(R"({"type": "NotificationFailed", "status": "True",
    "reason": "NotDelivered", "message": "an earlier event", "lastTransitionTime":
    "2026-01-02T03:05:00Z"})"));
  view_.observed.notify.deliveries.pop_back();
  view_.observed.notify.targets["mail"] = {State::kUnknown, {}};
  same(job_);
}

TEST_F(Rest, JobsOfAllKindsDecideTheSame) {
  Json many = job_;
  many["spec"]["completions"] = 9;
  many["spec"]["indexes"] = "0-3,8";
  many["spec"]["heartbeat"] = {{"leaseDurationSeconds", 9}, {"progressDeadlineSeconds", 99}};
  many["status"]["completedIndexes"] = "0,2-3";
  many["status"]["failedIndexes"] = "8";
  view_.leases_over.push_back({3, {}, {}});
  view_.leases_over[0].lease.uid = "lease-uid";
  same(many);
  Json queued = job_;
  queued["metadata"]["generation"] = 5;
  queued["spec"]["queue"] = {{"name", "encode"}, {"priority", 4}, {"key", "customer-7"}};
  same(queued);
  Json staged = queued;
  staged["spec"]["stages"] = json(R"([{"name": "verify", "when": "Always", "onFailure": "Continue",
    "heartbeat": {"leaseDurationSeconds": 8}, "template": {"spec": {"containers": [{"name": "v"}]}}}])");
  staged["status"]["stage"] = "verify";
  staged["status"]["stages"] = json(R"([{"name": "main", "phase": "Failed", "failures": 2,
    "message": "why"}, {"name": "verify", "phase": "Succeeded", "result": "42"}])");
  const std::string reported = same(staged);
  EXPECT_NE(reported.find(R"("result":"42")"), std::string::npos) << reported;
}

TEST_F(Rest, WhatQueuesAndPoolsReadOfAFinishedJobIsThere) {
  job_["spec"]["queue"] = {{"name", "encode"}, {"priority", -4}, {"key", "customer-7"}};
  job_["spec"].erase("template");
  job_["spec"]["workerPool"] = {{"name", "encoders"}, {"key", "film-9"}};
  const kube::ObjectPtr object = kube::whole(decode_cached_job(document(job_)));
  const reconciler::Job& job = as_job(object).job;
  EXPECT_EQ(job.queue->name + job.queue->key, "encodecustomer-7");
  EXPECT_EQ(job.queue->priority, -4);
  EXPECT_TRUE(job.has_pool);
  EXPECT_EQ(job.spec.pool->name + job.spec.pool->key, "encodersfilm-9");
  EXPECT_EQ(reconciler::shard_key(job), "encoding");
  EXPECT_EQ(job.version, 17U);
  EXPECT_EQ(job.created, parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(object->key(), "encoding/encode-film-1000001");
}

TEST_F(Rest, OnlyWhatIsAtRestIsPacked) {
  job_["status"]["phase"] = "Running";
  EXPECT_FALSE(is_packed(decode_cached_job(document(job_))));
  Json pod = settled_pod(1);
  EXPECT_TRUE(is_packed(decode_cached_pod(document(pod))));
  pod["metadata"]["finalizers"] = Json::array({reconciler::kFinalizer});
  EXPECT_FALSE(is_packed(decode_cached_pod(document(pod)))) << "its end is not on record";
  pod = settled_pod(1);
  pod["status"]["phase"] = "Running";
  EXPECT_FALSE(is_packed(decode_cached_pod(document(pod))));
  EXPECT_FALSE(decode_cached_pod(document(Json())));
  EXPECT_FALSE(decode_cached_job(document(Json())));
}

// Somebody may have removed the finalizer of a pod whose end is not on record.
TEST_F(Rest, AFinishedJobThatRunsABatchV1JobKeepsWhatThatMirrors) {
  Json job = finished_job(1);
  job["metadata"]["annotations"][reconciler::kBatchJobAnnotation] = "a-b";
  const kube::ObjectPtr object = decode_cached_job(document(job));
  ASSERT_FALSE(is_packed(object));
  const reconciler::Status& status = as_job(object).job.status;
  EXPECT_EQ(status.failures, 2);
  ASSERT_NE(status.condition("Failed"), nullptr);
  EXPECT_EQ(status.condition("Failed")->reason, "BackoffLimitExceeded");
  EXPECT_EQ(status.history.at(0).message, "");
}

TEST_F(Rest, APackedPodKeepsAll) {
  const auto check = [](const Json& pod) {
    const kube::ObjectPtr packed = kube::whole(decode_cached_pod(document(pod)));
    const kube::ObjectPtr object = decode_pod(document(pod));
    const auto& as_was = static_cast<const CachedPod&>(*object);
    const auto& as_is = static_cast<const CachedPod&>(*packed);
    EXPECT_EQ(as_is.pod, as_was.pod);
    EXPECT_EQ(as_is.job_name, as_was.job_name);
    EXPECT_EQ(as_is.key(), as_was.key());
    EXPECT_EQ(as_is.uid + as_is.owner_uid, as_was.uid + as_was.owner_uid);
  };
  check(settled_pod(1));
  Json other = settled_pod(1);
  other["metadata"]["name"] = "chosen-by-somebody";
  other["metadata"].erase("ownerReferences");
  other["metadata"]["deletionTimestamp"] = "2026-01-02T03:06:00Z";
  other["metadata"]["deletionGracePeriodSeconds"] = 30;
  other["status"]["phase"] = "Succeeded";
  other["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = -1;
  other["status"]["initContainerStatuses"] = json(R"([{"name": "sidecar", "state": {"waiting":
    {"reason": "PodInitializing", "message": "m"}}, "lastState": {"terminated": {"exitCode": 255,
    "reason": "Unknown", "startedAt": "2026-01-02T03:04:52Z"}}}])");
  other["spec"]["initContainers"] = json(R"([{"name": "sidecar", "restartPolicy": "Always"}])");
  check(other);
}

// The bound on which docs/internals/scale.md counts. It is about the names and UIDs, two of each
// pair.
TEST_F(Rest, AFinishedJobAndItsPodTakeAKilobyteOfTheCaches) {
  constexpr int kPairs = 2000;
  const auto fill = [](cache::Store& store, auto decode, auto object) {
    std::vector<kube::ObjectPtr> items;
    for (int number = 0; number < kPairs; ++number)
      items.push_back(decode(document(object(number))));
    std::vector<cache::Change> changes;
    cache::replace(store, {"", std::move(items), cache::Trust::kMayBeOld}, changes);
  };
  const std::ptrdiff_t before = allocated;
  cache::Store jobs;
  fill(jobs, decode_cached_job, finished_job);
  const std::ptrdiff_t of_jobs = allocated - before;
  cache::Store pods;
  jobs::add_pod_indexes(pods);
  fill(pods, decode_cached_pod, settled_pod);
  const std::ptrdiff_t of_pods = allocated - before - of_jobs;
  EXPECT_EQ(jobs.size() + pods.size(), 2U * kPairs);
  RecordProperty("job", static_cast<int>(of_jobs / kPairs));
  RecordProperty("pod", static_cast<int>(of_pods / kPairs));
  EXPECT_LT(of_jobs / kPairs, 500);
  EXPECT_LT(of_pods / kPairs, 700);
  EXPECT_GT(of_jobs / kPairs, 100) << "the count works";
}

}  // namespace
}  // namespace holdfast::codecs
