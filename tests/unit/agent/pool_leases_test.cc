// What the API server's answers about a worker's two Leases mean, and what a renewal changes.
#include "agent/wire/pool_leases.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using WorkKind = WorkReading::Kind;
using WorkerKind = WorkerReading::Kind;
using EventKind = WorkLease::Event::Kind;

Json lease(const std::string& name, const std::string& key, const std::string& text) {
  return {
      {"metadata",
       {{"name", name}, {"uid", "u-1"}, {"resourceVersion", "77"}, {"annotations", {{key, text}}}}},
      {"spec", {{"holderIdentity", "a/b"}, {"leaseDurationSeconds", 30}}}};
}

class WorkLeaseRule : public ::testing::Test {
 protected:
  static Json object(const std::string& text) { return lease("work", kWorkAnnotation, text); }
  WorkLease::Event event(const std::string& type, const Json& about) const {
    return record.read_event(Json({{"type", type}, {"object", about}}).dump());
  }
  const std::string text = R"({"seq": 4, "attempts": []})";
  const WorkLease record{"media", "work"};
};

TEST_F(WorkLeaseRule, ALeaseIsReadWithItsUidVersionAndWork) {
  const WorkLease::Read read = record.read(200, object(text).dump());
  ASSERT_EQ(read.reading.kind, WorkKind::kRead);
  EXPECT_EQ(read.reading.uid, "u-1");
  EXPECT_EQ(read.version, "77");
  ASSERT_TRUE(read.reading.work);
  EXPECT_EQ(read.reading.work->seq, 4);
}

TEST_F(WorkLeaseRule, WordsThatAreNotUnderstoodAreNoWork) {
  const WorkLease::Read read = record.read(200, object("{").dump());
  EXPECT_EQ(read.reading.kind, WorkKind::kRead);
  EXPECT_FALSE(read.reading.work);
  EXPECT_FALSE(read.reading.why.empty());
}

TEST_F(WorkLeaseRule, OnlyThisLeaseCountsAndOnlyItsOwnAbsence) {
  Json other = object(text);
  other["metadata"]["name"] = "other";
  EXPECT_EQ(record.read(200, other.dump()).reading.kind, WorkKind::kNone);
  EXPECT_EQ(record.read(404, R"({"details": {"name": "work"}})").reading.kind, WorkKind::kGone);
  EXPECT_EQ(record.read(404, "no page").reading.kind, WorkKind::kNone);
  EXPECT_EQ(record.read(500, "").reading.kind, WorkKind::kNone);
  EXPECT_EQ(event("MODIFIED", other).kind, EventKind::kEnd);
}

TEST_F(WorkLeaseRule, EventsOfTheWatch) {
  for (const char* const type : {"ADDED", "MODIFIED"}) {
    const WorkLease::Event changed = event(type, object(text));
    ASSERT_EQ(changed.kind, EventKind::kLease) << type;
    EXPECT_EQ(changed.read.reading.work->seq, 4);
    EXPECT_EQ(changed.read.version, "77");
  }
  const WorkLease::Event deleted = event("DELETED", object(text));
  EXPECT_EQ(deleted.kind, EventKind::kLease);
  EXPECT_EQ(deleted.read.reading.kind, WorkKind::kGone);
  EXPECT_FALSE(deleted.read.reading.work);
  const WorkLease::Event mark = event("BOOKMARK", {{"metadata", {{"resourceVersion", "99"}}}});
  EXPECT_EQ(mark.kind, EventKind::kBookmark);
  EXPECT_EQ(mark.read.version, "99");
}

TEST_F(WorkLeaseRule, AWatchThatIsTooOldIsReadAgainAndAnyOtherLineEndsIt) {
  EXPECT_EQ(event("ERROR", {{"code", 410}}).kind, EventKind::kExpired);
  EXPECT_EQ(event("ERROR", {{"code", 500}}).kind, EventKind::kEnd);
  EXPECT_EQ(event("BOOKMARK", Json::object()).kind, EventKind::kEnd);
  EXPECT_EQ(event("NEW", object(text)).kind, EventKind::kEnd);
  EXPECT_EQ(record.read_event("{").kind, EventKind::kEnd);
  EXPECT_EQ(record.read_event("").kind, EventKind::kEnd);
}

TEST_F(WorkLeaseRule, TheWatchIsOfThisLeaseAndFromItsVersionOn) {
  const std::string path = record.watch_path("77");
  EXPECT_TRUE(path.starts_with("/apis/coordination.k8s.io/v1/namespaces/media/leases?")) << path;
  for (const char* const part :
       {"watch=1", "fieldSelector=metadata.name%3Dwork", "resourceVersion=77", "timeoutSeconds="}) {
    EXPECT_NE(path.find(part), std::string::npos) << path;
  }
}

class WorkerLeaseRule : public ::testing::Test {
 protected:
  static Json object(const std::string& text = "") {
    return lease("worker", kWorkerAnnotation, text);
  }
  WorkerLease record{"media", "worker"};
};

TEST_F(WorkerLeaseRule, ALeaseIsReadWithItsHolderAndItsReport) {
  WorkerReading reading = record.read(200, object().dump());
  ASSERT_EQ(reading.kind, WorkerKind::kLease);
  EXPECT_EQ(reading.uid, "u-1");
  EXPECT_EQ(record.uid(), "u-1");
  EXPECT_EQ(reading.holder, "a/b");
  ASSERT_TRUE(reading.report);
  EXPECT_EQ(reading.report->life, "");
  reading = record.read(200, object("{").dump());
  EXPECT_EQ(reading.kind, WorkerKind::kLease);
  EXPECT_FALSE(reading.report);
}

TEST_F(WorkerLeaseRule, ARenewalChangesTheTimeAndTheReportAlone) {
  record.read(200, object().dump());
  WorkerReport report;
  report.life = "me";
  Json expected = object(encode_report(report));
  expected["metadata"]["managedFields"] = Json::array({Json::object()});
  expected["spec"]["renewTime"] = "2026-01-02T03:04:05.678901Z";
  const std::string body = record.renewed(report, *parse_time("2026-01-02T03:04:05.678901234Z"));
  EXPECT_EQ(Json::parse(body), expected);
  const WorkerReading answer = record.read_renewal(200, body);
  ASSERT_EQ(answer.kind, WorkerKind::kLease);
  EXPECT_EQ(answer.report->life, "me");
}

TEST_F(WorkerLeaseRule, AnotherRenewalsAnswerAcknowledgesNothing) {
  record.read(200, object().dump());
  record.renewed({}, *parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(record.read_renewal(200, object().dump()).kind, WorkerKind::kNone);
}

TEST_F(WorkerLeaseRule, Refusals) {
  EXPECT_EQ(record.read(409, "{}").kind, WorkerKind::kConflict);
  EXPECT_EQ(record.read(404, R"({"details": {"name": "worker"}})").kind, WorkerKind::kGone);
  EXPECT_EQ(record.read(403, R"({"message": "fenced: not yours"})").kind, WorkerKind::kFenced);
  EXPECT_EQ(record.read(403, R"({"message": "no right"})").kind, WorkerKind::kNone);
}

}  // namespace
}  // namespace holdfast::agent
