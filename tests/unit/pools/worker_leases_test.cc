// The two Leases of a warm worker, as they are written and read.
#include "operator/pools/worker_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/pool/worker.h"
#include "tests/support/json_document.h"

namespace holdfast::pools {
namespace {

using reconciler::WorkerIs;
using ::testing::HasSubstr;

const Time kWritten = *parse_time("2026-01-02T03:04:05Z");

WorkerPool pool() {
  WorkerPool pool;
  pool.name = "thumbnails";
  pool.namespace_ = "media";
  pool.uid = "p-1";
  pool.spec.lease_duration = std::chrono::seconds(15);
  return pool;
}

WorkerReport report() {
  WorkerReport report;
  report.work_uid = "work-1";
  report.seq = 3;
  report.life = "life";
  Answer answer;
  answer.id = {"job-1", 0, 2};
  answer.kind = AnswerKind::kEnded;
  answer.exit_code = 3;
  report.answers.push_back(answer);
  return report;
}

// As the API server has it after the POST with this body.
Json stored(const std::string& body, const char* version = "7") {
  Json lease = Json::parse(body);
  lease["metadata"]["uid"] = "l-1";
  lease["metadata"]["resourceVersion"] = version;
  return lease;
}

Json renewed_lease() {
  Json lease = stored(
      new_worker_lease_body(pool(), "7-of-32", "w-1", worker_holder("thumbnails-1-x", "w-1")));
  lease["metadata"]["annotations"][kWorkerAnnotation] = encode_report(report());
  lease["spec"]["renewTime"] = "2026-01-02T03:04:05.123456Z";
  return lease;
}

CachedWorkerLease decoded(const Json& json) {
  const kube::ObjectPtr object = decode_worker_lease(document(json));
  EXPECT_TRUE(object);
  return object ? static_cast<const CachedWorkerLease&>(*object) : CachedWorkerLease();
}

TEST(WorkerLeases, TheWorkerLeaseIsTheAgentsAndBelongsToThePool) {
  const Json body = Json::parse(
      new_worker_lease_body(pool(), "7-of-32", "w-1", worker_holder("thumbnails-1-x", "w-1")));
  EXPECT_EQ(body["metadata"]["name"], "holdfast-worker-w-1");
  EXPECT_EQ(body["metadata"]["namespace"], "media");
  EXPECT_EQ(body["metadata"]["labels"]["holdfast.dev/worker-pool"], "thumbnails");
  EXPECT_EQ(body["metadata"]["labels"]["holdfast.dev/shard"], "7-of-32");
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["kind"], "WorkerPool");
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["uid"], "p-1");
  EXPECT_EQ(body["spec"],
            Json::parse(R"({"holderIdentity": "thumbnails-1-x/w-1", "leaseDurationSeconds": 15})"));
}

TEST(WorkerLeases, IsReadAsItWasRenewed) {
  const CachedWorkerLease lease = decoded(renewed_lease());
  EXPECT_EQ(lease.refused, "");
  EXPECT_FALSE(lease.is_work);
  EXPECT_EQ(lease.pod_uid, "w-1");
  EXPECT_EQ(lease.pool_name, "thumbnails");
  EXPECT_EQ(lease.owner_uid, "p-1");
  EXPECT_EQ(lease.version, 7u);
  EXPECT_EQ(lease.duration, std::chrono::seconds(15));
  EXPECT_EQ(lease.is(), WorkerIs::kLive);
  EXPECT_EQ(lease.renewed, parse_time("2026-01-02T03:04:05.123456Z"));
  EXPECT_EQ(lease.error, "");
  EXPECT_EQ(lease.report.life, "life");
  ASSERT_EQ(lease.report.answers.size(), 1u);
  EXPECT_EQ(lease.report.answers[0].exit_code, 3);
}

TEST(WorkerLeases, BeforeTheFirstRenewalThereIsNoReport) {
  const CachedWorkerLease lease = decoded(stored(
      new_worker_lease_body(pool(), "7-of-32", "w-1", worker_holder("thumbnails-1-x", "w-1"))));
  EXPECT_FALSE(lease.renewed);
  EXPECT_EQ(lease.error, "");
  EXPECT_EQ(lease.report.life, "");
}

TEST(WorkerLeases, RevokedAndCutOffAreSwapsOfTheVersionThatWasRead) {
  const Json before = renewed_lease();
  const Json revoked = Json::parse(revoked_lease_body(decoded(before), "8-of-32"));
  EXPECT_EQ(revoked["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(revoked["metadata"]["uid"], "l-1");
  EXPECT_EQ(revoked["metadata"]["labels"]["holdfast.dev/shard"], "8-of-32") << "who writes it says";
  EXPECT_EQ(decoded(revoked).is(), WorkerIs::kRevoked);
  const Json cut_off =
      Json::parse(cut_off_lease_body(decoded(revoked), "8-of-32", "PodEnded", "it has ended"));
  EXPECT_EQ(cut_off["metadata"]["resourceVersion"], "7");
  EXPECT_FALSE(cut_off["spec"].contains("holderIdentity")) << "an empty one is not valid";
  const CachedWorkerLease last = decoded(cut_off);
  EXPECT_EQ(last.is(), WorkerIs::kCutOff);
  EXPECT_EQ(last.words, encode_report(report())) << "its last answers count";
  EXPECT_EQ(last.cut_off_why, "it has ended");
  EXPECT_FALSE(last.out_of_memory);
  EXPECT_EQ(last.renewed, decoded(before).renewed);
  EXPECT_EQ(cut_off["metadata"]["labels"], revoked["metadata"]["labels"]);
  EXPECT_EQ(cut_off["metadata"]["ownerReferences"], before["metadata"]["ownerReferences"]);
  EXPECT_EQ(cut_off["spec"]["leaseDurationSeconds"], 15);
}

// The pod may be gone before all jobs have looked.
TEST(WorkerLeases, ACutOffKeepsThatTheWorkerRanOutOfMemory) {
  const CachedWorkerLease lease = decoded(renewed_lease());
  Json cut_off = Json::parse(
      cut_off_lease_body(lease, "8-of-32", reconciler::kOutOfMemory, "it ran out of memory"));
  EXPECT_TRUE(decoded(cut_off).out_of_memory);
  EXPECT_EQ(decoded(cut_off).cut_off_why, "it ran out of memory");
  cut_off["spec"]["holderIdentity"] = worker_holder("thumbnails-1-x", "w-1");
  EXPECT_FALSE(decoded(cut_off).out_of_memory) << "its agent cannot say that of itself";
  EXPECT_EQ(decoded(cut_off).cut_off_why, "");
}

TEST(WorkerLeases, TheWorkLeaseSaysWhatTheSlotsShallDo) {
  const Json lease =
      stored(new_work_lease_body(pool(), "7-of-32", "w-1", Work{0, false, {}}, kWritten), "9");
  EXPECT_EQ(lease["metadata"]["name"], "holdfast-work-w-1");
  EXPECT_FALSE(lease["spec"].contains("holderIdentity"));
  const CachedWorkerLease first = decoded(lease);
  EXPECT_TRUE(first.is_work);
  EXPECT_EQ(first.pod_uid, "w-1");
  const Work work{1, true, {{{"job-1", 4, 2}, "film", false}}};
  EXPECT_EQ(first.renewed, kWritten);
  const Time later = kWritten + std::chrono::seconds(3);
  const Json next = Json::parse(work_lease_body(first, "8-of-32", work, later));
  EXPECT_EQ(next["metadata"]["resourceVersion"], "9");
  EXPECT_EQ(next["metadata"]["uid"], "l-1");
  const CachedWorkerLease second = decoded(next);
  EXPECT_EQ(second.refused, "");
  EXPECT_EQ(second.renewed, later) << "a worker without an entry is idle since then";
  EXPECT_EQ(second.work.seq, 1);
  EXPECT_TRUE(second.work.draining);
  ASSERT_EQ(second.work.entries.size(), 1u);
  EXPECT_EQ(second.work.entries[0].job_name, "film");
}

TEST(WorkerLeases, AnotherLeaseIsNone) {
  Json lease = renewed_lease();
  lease["metadata"]["name"] = "holdfast-u-1";
  EXPECT_FALSE(decode_worker_lease(document(lease)));
  lease["metadata"]["name"] = "holdfast-worker-";
  EXPECT_FALSE(decode_worker_lease(document(lease)));
}

TEST(WorkerLeases, ALeaseWithoutADurationMayBeOfAnAgentWithTheLongest) {
  for (const std::int64_t given : {0, -1, 99'999}) {
    Json lease = renewed_lease();
    lease["spec"]["leaseDurationSeconds"] = given;
    EXPECT_EQ(decoded(lease).duration, std::chrono::hours(1));
  }
}

TEST(WorkerLeases, WhatIsNotOursSaysWhy) {
  const auto why = [](const char* pointer, const Json& value) {
    Json lease = renewed_lease();
    lease[Json::json_pointer(pointer)] = value;
    const CachedWorkerLease cached = decoded(lease);
    EXPECT_EQ(cached.report.life, "") << "none of its words count";
    return cached.refused;
  };
  EXPECT_EQ(why("/metadata/ownerReferences/0/kind", "DurableJob"), "no WorkerPool owns it");
  EXPECT_EQ(why("/metadata/ownerReferences/0/controller", false), "no WorkerPool owns it");
  EXPECT_EQ(why("/metadata/ownerReferences/0/apiVersion", "apps/v1"), "no WorkerPool owns it");
  EXPECT_THAT(why("/metadata/labels", {{"holdfast.dev/worker-pool", "other"}}),
              HasSubstr("is not thumbnails, the pool that owns it"));
  EXPECT_THAT(why("/spec/holderIdentity", "thumbnails-1-x/w-2"),
              HasSubstr("not the pod with the UID w-1"));
  EXPECT_THAT(why("/spec/holderIdentity", "me"), HasSubstr("not the pod with the UID w-1"));
}

TEST(WorkerLeases, WordsThatNobodyUnderstandsAreAnErrorAndStay) {
  Json lease = renewed_lease();
  lease["metadata"]["annotations"][kWorkerAnnotation] = "{\"seq\": -";
  const CachedWorkerLease cached = decoded(lease);
  EXPECT_NE(cached.error, "");
  EXPECT_EQ(cached.refused, "");
  EXPECT_TRUE(cached.report.answers.empty());
  const Json cut_off = Json::parse(cut_off_lease_body(cached, "8-of-32", "Silent", "it is silent"));
  EXPECT_EQ(string_at(at(at(cut_off, "metadata"), "annotations"), kWorkerAnnotation),
            "{\"seq\": -");
  lease["metadata"]["annotations"][kWorkerAnnotation] = std::string(kMaxProtocolBytes + 1, ' ');
  EXPECT_EQ(decoded(lease).words, "") << "memory is bounded";
  EXPECT_NE(decoded(lease).error, "");
}

}  // namespace
}  // namespace holdfast::pools
