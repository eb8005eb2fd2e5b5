// What the API server's answers mean, and what a renewal changes.
#include "agent/wire/lease.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using Kind = LeaseRefusal::Kind;

constexpr const char* kLease = R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
  "metadata": {"name": "holdfast-1", "namespace": "media", "uid": "u-1", "resourceVersion": "77",
    "labels": {"holdfast.dev/job-uid": "1"}, "managedFields": [{"manager": "x"}],
    "annotations": {"holdfast.dev/granted": "3 a/b", "theirs": "kept",
      "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
  "spec": {"holderIdentity": "a/b", "leaseTransitions": 3, "leaseDurationSeconds": 30}})";
constexpr const char* kNotFound = R"({"kind": "Status", "code": 404, "reason": "NotFound",
  "message": "leases \"holdfast-1\" not found", "details": {"name": "holdfast-1", "kind": "leases"}})";

std::string status(const std::string& message) {
  return Json({{"kind", "Status"}, {"message", message}}).dump();
}

class LeaseRecordRule : public ::testing::Test {
 protected:
  LeaseRefusal refusal(int status, const std::string& body) {
    return std::get<LeaseRefusal>(record.read(status, body));
  }
  LeaseRecord record{"media", "holdfast-1"};
};

TEST_F(LeaseRecordRule, ALeaseIsReadWithItsUidHolderAndAttempt) {
  const LeaseView lease = std::get<LeaseView>(record.read(200, kLease));
  EXPECT_EQ(lease.uid, "u-1");
  EXPECT_EQ(lease.holder, "a/b");
  EXPECT_EQ(lease.attempt, 3);
  EXPECT_EQ(record.path(), "/apis/coordination.k8s.io/v1/namespaces/media/leases/holdfast-1");
}

TEST_F(LeaseRecordRule, ARenewalChangesTheTimeAndItsOwnAnnotationsAlone) {
  record.read(200, kLease);
  const Renewal renewal{.mark = 4, .age_seconds = 2, .message = "42 %", .ended = 137};
  Json expected = Json::parse(kLease);
  expected["metadata"]["managedFields"] = Json::array({Json::object()});  // drop the record
  expected["spec"]["renewTime"] = "2026-01-02T03:04:05.678901Z";
  Json& annotations = expected["metadata"]["annotations"];
  annotations["holdfast.dev/progress"] = "4";
  annotations["holdfast.dev/progress-age"] = "2";
  annotations["holdfast.dev/progress-message"] = "42 %";
  annotations["holdfast.dev/ended"] = "137";
  const Time now = *parse_time("2026-01-02T03:04:05.678901234Z");
  EXPECT_EQ(Json::parse(record.renewed(renewal, now)), expected);
}

TEST_F(LeaseRecordRule, WithoutAMessageOrAnEndNoneIsWritten) {
  record.read(200, kLease);
  const Json body = Json::parse(record.renewed(Renewal{}, Time()));
  EXPECT_FALSE(body["metadata"]["annotations"].contains("holdfast.dev/progress-message"));
  EXPECT_FALSE(body["metadata"]["annotations"].contains("holdfast.dev/ended"));
}

TEST_F(LeaseRecordRule, AMessageThatIsTakenBackBecomesEmpty) {
  Json lease = Json::parse(kLease);
  lease["metadata"]["annotations"]["holdfast.dev/progress-message"] = "old";
  record.read(200, lease.dump());
  const Json body = Json::parse(record.renewed(Renewal{}, Time()));
  EXPECT_EQ(body["metadata"]["annotations"]["holdfast.dev/progress-message"], "");
}

TEST_F(LeaseRecordRule, ALeaseWithoutAnnotationsGetsThem) {
  Json lease = Json::parse(kLease);
  lease["metadata"].erase("annotations");
  record.read(200, lease.dump());
  const Json body = Json::parse(record.renewed(Renewal{}, Time()));
  EXPECT_EQ(body["metadata"]["annotations"]["holdfast.dev/progress"], "0");
}

// What a proxy or a server says twice would be taken for the answer to what is asked next.
TEST_F(LeaseRecordRule, ARenewalIsAcknowledgedByItsOwnTimeAlone) {
  record.read(200, kLease);
  const std::string first = record.renewed(Renewal{}, *parse_time("2026-01-02T03:04:05.000001Z"));
  EXPECT_TRUE(std::holds_alternative<LeaseView>(record.read_renewal(200, first)));
  const std::string second = record.renewed(Renewal{}, *parse_time("2026-01-02T03:04:15.000001Z"));
  for (const std::string& stale : {first, std::string(kLease)}) {
    const auto answer = std::get<LeaseRefusal>(record.read_renewal(200, stale));
    EXPECT_EQ(answer.kind, Kind::kNone);
    EXPECT_NE(answer.why.find("another renewal"), std::string::npos) << answer.why;
  }
  EXPECT_TRUE(std::holds_alternative<LeaseView>(record.read_renewal(200, second)));
  const auto conflict = std::get<LeaseRefusal>(record.read_renewal(409, status("conflict")));
  EXPECT_EQ(conflict.kind, Kind::kConflict);
}

TEST_F(LeaseRecordRule, OnlyA404ThatNamesTheLeaseSaysThatItIsGone) {
  EXPECT_EQ(refusal(404, kNotFound).kind, Kind::kGone);
  EXPECT_EQ(refusal(404, "404 page not found").kind, Kind::kNone);
  EXPECT_EQ(refusal(404, status("the server could not find the requested resource")).kind,
            Kind::kNone);
}

TEST_F(LeaseRecordRule, OnlyA403OfTheFenceIsAVerdict) {
  const LeaseRefusal fenced = refusal(
      403, status("leases \"holdfast-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding "
                  "'b' denied request: fenced: another pod holds it"));
  EXPECT_EQ(fenced.kind, Kind::kFenced);
  EXPECT_EQ(fenced.why, "the API server refused the renewal: another pod holds it");
  EXPECT_EQ(refusal(403, status("User \"x\" cannot update resource")).kind, Kind::kNone);
  EXPECT_EQ(refusal(500, status("fenced: by nobody")).kind, Kind::kNone);
}

TEST_F(LeaseRecordRule, NothingElseIsAVerdict) {
  EXPECT_EQ(refusal(409, status("the object has been modified")).kind, Kind::kConflict);
  for (const int code : {201, 301, 400, 401, 422, 429, 500, 503}) {
    const LeaseRefusal answer = refusal(code, status("words of the server"));
    EXPECT_EQ(answer.kind, Kind::kNone) << code;
    EXPECT_NE(answer.why.find(std::to_string(code)), std::string::npos);
    EXPECT_NE(answer.why.find("words of the server"), std::string::npos);
  }
}

TEST_F(LeaseRecordRule, AnAnswerThatIsNoLeaseIsNone) {
  const std::string deep = std::string(100000, '[');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("<html>"), deep,
        std::string(R"({"metadata": {}})"), std::string(R"({"metadata": 7})"),
        std::string(R"({"metadata": {"name": "holdfast-1", "uid": "u"}, "spec": 7})"),
        std::string(R"({"metadata": {"name": "holdfast-2", "uid": "u"}})")}) {
    EXPECT_EQ(refusal(200, body).kind, Kind::kNone) << body.substr(0, 50);
  }
}

TEST_F(LeaseRecordRule, WhatAServerSaysIsShownOnOneLineAndBounded) {
  const LeaseRefusal answer = refusal(500, status("a\nb\x1b[31m" + std::string(5000, 'x')));
  EXPECT_EQ(answer.why.find_first_of("\n\x1b"), std::string::npos);
  EXPECT_LE(answer.why.size(), 512u);
}

TEST_F(LeaseRecordRule, ACheckpointStaysUntilThereIsAnotherOne) {
  record.read(200, kLease);
  EXPECT_EQ(record.checkpoint(), "");
  Renewal renewal;
  renewal.checkpoint = "page 7\n\"quoted\"";
  Json lease = Json::parse(record.renewed(renewal, Time{}));
  EXPECT_EQ(lease["metadata"]["annotations"]["holdfast.dev/checkpoint"], *renewal.checkpoint);
  record.read_renewal(200, lease.dump());
  EXPECT_EQ(record.checkpoint(), *renewal.checkpoint);
  lease = Json::parse(record.renewed(Renewal{}, Time{}));
  EXPECT_EQ(lease["metadata"]["annotations"]["holdfast.dev/checkpoint"], *renewal.checkpoint);
}

}  // namespace
}  // namespace holdfast::agent
