// Since when a Lease has stood without a holder, and whose silence counts.
#include "operator/controller/heartbeat_records.h"

#include <gtest/gtest.h>

namespace holdfast::controller {
namespace {

using std::chrono::seconds;

constexpr seconds kWindow{30};

SteadyTime at(int second) { return SteadyTime(seconds(1000 + second)); }

CachedHeartbeat lease_of(const std::string& name, std::uint64_t version) {
  CachedHeartbeat lease;
  lease.namespace_ = "media";
  lease.name = name;
  lease.version = lease.lease.version = version;
  lease.lease.uid = "uid-of-" + name;
  lease.lease.attempt = 1;
  lease.lease.holder = lease.lease.granted = name + "-1/pod";
  lease.lease.renewed = true;
  return lease;
}

CachedHeartbeat taken(std::int64_t attempt) {
  CachedHeartbeat lease = lease_of("a", 10 + static_cast<std::uint64_t>(attempt));
  lease.lease.attempt = attempt;
  lease.lease.holder.clear();
  lease.lease.renewed = false;
  return lease;
}

Duration taken_for(HeartbeatRecords& records, const CachedHeartbeat& lease, int second) {
  return records.observe(lease, kWindow, at(second)).taken_for;
}

TEST(HeartbeatRecords, TheWaitGoesOnWhateverAttemptsTheLeaseIsTakenFor) {
  HeartbeatRecords records;
  records.seen(lease_of("a", 1), true, at(0));
  records.seen(taken(2), true, at(10));
  EXPECT_EQ(taken_for(records, taken(2), 15), seconds(5));
  records.seen(taken(3), true, at(20));
  EXPECT_EQ(taken_for(records, taken(3), 25), seconds(15));
}

TEST(HeartbeatRecords, TheWaitBeginsAnewForAnotherLeaseAndAfterAnyGrant) {
  CachedHeartbeat made_anew = taken(3);
  made_anew.lease.uid = "another";
  CachedHeartbeat granted_unseen = taken(3);
  granted_unseen.lease.granted = "a-2/pod";
  for (const CachedHeartbeat& lease : {made_anew, granted_unseen}) {
    HeartbeatRecords records;
    records.seen(taken(2), true, at(10));
    EXPECT_EQ(taken_for(records, lease, 20), seconds(0)) << "read live, not seen yet";
    records.seen(lease, true, at(20));
    EXPECT_EQ(taken_for(records, lease, 25), seconds(5));
  }
  HeartbeatRecords records;
  records.seen(taken(2), true, at(10));
  records.seen(lease_of("a", 50), true, at(20));
  EXPECT_EQ(taken_for(records, lease_of("a", 50), 25), seconds(0)) << "it has a holder";
  records.seen(taken(3), true, at(30));
  EXPECT_EQ(taken_for(records, taken(3), 35), seconds(5));
}

// One Lease falls silent at 0, and three others with it.
bool held_back(bool others_are_worked_on) {
  HeartbeatRecords records;
  records.watch([](const std::string&) { return true; }, at(0));
  for (int second = 0; second <= 40; second += 2) {
    records.proof(at(second));
    if (second > 4) continue;
    const auto version = static_cast<std::uint64_t>(10 + second);
    for (const char* const name : {"a", "b", "c", "d"}) {
      records.seen(lease_of(name, version), true, at(second));
    }
  }
  for (const char* const name : {"b", "c", "d"}) {
    records.seen(lease_of(name, 14), others_are_worked_on, at(40));
  }
  return records.observe(lease_of("a", 14), kWindow, at(40)).breaker;
}

TEST(HeartbeatRecords, LeasesThatNobodyWorksOnDoNotHoldAVerdictBack) {
  EXPECT_TRUE(held_back(/*others_are_worked_on=*/true));
  EXPECT_FALSE(held_back(/*others_are_worked_on=*/false));
}

TEST(HeartbeatRecords, ANamespaceThatIsNotWatchedStopsNoOthersClocks) {
  HeartbeatRecords records({"media", "other"});
  const auto watch = [&](bool media, bool other, int second) {
    records.watch([=](const std::string& watched) { return watched == "media" ? media : other; },
                  at(second));
    records.proof(at(second));
  };
  CachedHeartbeat there = lease_of("b", 1);
  there.namespace_ = "other";
  watch(true, true, 0);
  records.seen(lease_of("a", 1), true, at(0));
  records.seen(there, true, at(0));
  for (int second = 2; second <= 20; second += 2) watch(true, false, second);
  EXPECT_EQ(records.observe(lease_of("a", 1), kWindow, at(20)).silent_for, seconds(20));
  EXPECT_LE(records.observe(there, kWindow, at(20)).silent_for, seconds(2));
}

}  // namespace
}  // namespace holdfast::controller
