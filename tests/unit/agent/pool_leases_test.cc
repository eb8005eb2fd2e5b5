// What the API server's answers about a worker's two Leases mean, and what a renewal changes.
#include "agent/wire/pool_leases.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using Kind = LeaseRefusal::Kind;
using News = WorkLease::News;
using Expired = WorkLease::Expired;
using End = WorkLease::End;

Json lease(const std::string& name, const std::string& key, const std::string& text) {
  return {
      {"metadata",
       {{"name", name}, {"uid", "u-1"}, {"resourceVersion", "77"}, {"annotations", {{key, text}}}}},
      {"spec", {{"holderIdentity", "a/b"}, {"leaseDurationSeconds", 30}}}};
}

template <class Reading>
Kind kind_of(const Reading& reading) {
  return std::get<LeaseRefusal>(reading).kind;
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
  const WorkView view = std::get<WorkView>(record.read(200, object(text).dump()));
  EXPECT_EQ(view.uid, "u-1");
  EXPECT_EQ(view.version, "77");
  ASSERT_TRUE(view.work);
  EXPECT_EQ(view.work->seq, 4);
}

TEST_F(WorkLeaseRule, WordsThatAreNotUnderstoodAreNoWork) {
  const WorkView view = std::get<WorkView>(record.read(200, object("{").dump()));
  ASSERT_FALSE(view.work);
  EXPECT_FALSE(view.work.error().message.empty());
}

TEST_F(WorkLeaseRule, OnlyThisLeaseCountsAndOnlyItsOwnAbsence) {
  Json other = object(text);
  other["metadata"]["name"] = "other";
  EXPECT_EQ(kind_of(record.read(200, other.dump())), Kind::kNone);
  EXPECT_EQ(kind_of(record.read(404, R"({"details": {"name": "work"}})")), Kind::kGone);
  EXPECT_EQ(kind_of(record.read(404, "no page")), Kind::kNone);
  EXPECT_EQ(kind_of(record.read(500, "")), Kind::kNone);
  EXPECT_TRUE(std::holds_alternative<End>(event("MODIFIED", other)));
}

TEST_F(WorkLeaseRule, EventsOfTheWatch) {
  for (const char* const type : {"ADDED", "MODIFIED"}) {
    const News changed = std::get<News>(event(type, object(text)));
    EXPECT_EQ(std::get<WorkView>(*changed.reading).work->seq, 4) << type;
    EXPECT_EQ(changed.version, "77");
  }
  const News deleted = std::get<News>(event("DELETED", object(text)));
  EXPECT_EQ(kind_of(*deleted.reading), Kind::kGone);
  const News mark = std::get<News>(event("BOOKMARK", {{"metadata", {{"resourceVersion", "99"}}}}));
  EXPECT_FALSE(mark.reading);
  EXPECT_EQ(mark.version, "99");
}

TEST_F(WorkLeaseRule, AWatchThatIsTooOldIsReadAgainAndAnyOtherLineEndsIt) {
  EXPECT_TRUE(std::holds_alternative<Expired>(event("ERROR", {{"code", 410}})));
  EXPECT_TRUE(std::holds_alternative<End>(event("ERROR", {{"code", 500}})));
  EXPECT_TRUE(std::holds_alternative<End>(event("BOOKMARK", Json::object())));
  EXPECT_TRUE(std::holds_alternative<End>(event("NEW", object(text))));
  EXPECT_TRUE(std::holds_alternative<End>(record.read_event("{")));
  EXPECT_TRUE(std::holds_alternative<End>(record.read_event("")));
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
  WorkerView reading = std::get<WorkerView>(record.read(200, object().dump()));
  EXPECT_EQ(reading.uid, "u-1");
  EXPECT_EQ(record.uid(), "u-1");
  EXPECT_EQ(reading.holder, "a/b");
  ASSERT_TRUE(reading.report);
  EXPECT_EQ(reading.report->life, "");
  reading = std::get<WorkerView>(record.read(200, object("{").dump()));
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
  const WorkerView answer = std::get<WorkerView>(record.read_renewal(200, body));
  EXPECT_EQ(answer.report->life, "me");
}

TEST_F(WorkerLeaseRule, AnotherRenewalsAnswerAcknowledgesNothing) {
  record.read(200, object().dump());
  record.renewed({}, *parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(kind_of(record.read_renewal(200, object().dump())), Kind::kNone);
}

TEST_F(WorkerLeaseRule, Refusals) {
  EXPECT_EQ(kind_of(record.read(409, "{}")), Kind::kConflict);
  EXPECT_EQ(kind_of(record.read(404, R"({"details": {"name": "worker"}})")), Kind::kGone);
  EXPECT_EQ(kind_of(record.read(403, R"({"message": "fenced: not yours"})")), Kind::kFenced);
  EXPECT_EQ(kind_of(record.read(403, R"({"message": "no right"})")), Kind::kNone);
}

}  // namespace
}  // namespace holdfast::agent
