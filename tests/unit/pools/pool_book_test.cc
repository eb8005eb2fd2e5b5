// What a replica knows of the slots of a pool: from jobs, from Leases, and from its own promises.
#include "operator/pools/pool_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace holdfast::pools {
namespace {

using reconciler::Phase;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const SteadyTime kStart(seconds(100));

codecs::CachedJob job(const std::string& uid, std::uint64_t version = 1) {
  codecs::CachedJob job;
  job.namespace_ = job.job.namespace_ = "media";
  job.name = job.job.name = "job-" + uid;
  job.uid = job.job.uid = uid;
  job.version = job.job.version = version;
  job.job.created = Time(seconds(uid[0]));
  job.job.spec.pool = reconciler::PoolRef{"thumbnails", "", std::nullopt};
  job.job.status.phase = Phase::kPending;
  return job;
}

// Its only run has this attempt on the worker.
codecs::CachedJob placed(const std::string& uid, const std::string& worker,
                         std::uint64_t version = 2, bool open = true) {
  codecs::CachedJob one = job(uid, version);
  one.job.status.phase = Phase::kRunning;
  one.job.status.attempt = 1;
  reconciler::Run run;
  run.attempt = 1;
  run.worker_uid = worker;
  if (!open) run.next_attempt_time = Time(seconds(1));
  one.job.status.runs.push_back(run);
  return one;
}

AttemptId id(const std::string& uid) { return {uid, 0, 1}; }

class PoolBookTest : public ::testing::Test {
 protected:
  ~PoolBookTest() override { EXPECT_NO_THROW(book_.check()); }
  void worker(const std::string& uid, std::int64_t slots,
              const std::vector<std::string>& entries = {},
              const std::vector<std::string>& over = {}, bool takes = true) {
    Work work;
    for (const std::string& one : entries) work.entries.push_back({id(one), "job-" + one});
    WorkerReport report;
    for (const std::string& one : over) {
      Answer answer;
      answer.id = id(one);
      answer.kind = AnswerKind::kEnded;
      report.answers.push_back(answer);
    }
    book_.put_worker({"pod-" + uid, uid, seconds(30)}, slots, takes, work, report);
  }
  std::vector<std::string> offers(const codecs::CachedJob& job) {
    std::vector<std::string> uids;
    for (const auto& offer : book_.offer(job, now_).offers) uids.push_back(offer.uid);
    return uids;
  }
  void promise(const std::string& uid, const std::string& to) {
    book_.placed(job(uid), placed(uid, to).job.status, now_);
  }

  PoolBook book_;
  SteadyTime now_ = kStart;
};

TEST_F(PoolBookTest, OpenAttemptsAndEntriesUseASlotOnce) {
  worker("w", 4);
  EXPECT_EQ(book_.workers().free(), 4);
  EXPECT_THAT(book_.put(placed("a", "w"), now_), ElementsAre("w"));
  EXPECT_EQ(book_.workers().free(), 3);
  worker("w", 4, {"a", "b"});
  EXPECT_EQ(book_.workers().free(), 2) << "the record of b has moved on, but its entry is there";
  EXPECT_EQ(book_.workers().busy(), 2);
  EXPECT_EQ(book_.workers().of("w").attempts(), 2);
  EXPECT_THAT(book_.put(placed("a", "w"), now_), IsEmpty()) << "nothing has changed";
}

TEST_F(PoolBookTest, ASlotIsFreeAsSoonAsTheWorkerHasAnsweredWithAnEnd) {
  worker("w", 1, {"a"});
  book_.put(placed("a", "w"), now_);
  EXPECT_EQ(book_.workers().free(), 0);
  worker("w", 1, {"a"}, {"a"});
  EXPECT_EQ(book_.workers().free(), 1);
  EXPECT_EQ(book_.workers().of("w").attempts(), 1) << "it still has to be read";
}

TEST_F(PoolBookTest, AnAttemptThatIsOverUsesItsSlotAsLongAsItsEntryIsThere) {
  worker("w", 1, {"a"});
  EXPECT_THAT(book_.put(placed("a", "w", 3, /*open=*/false), now_), ElementsAre("w"));
  EXPECT_EQ(book_.workers().free(), 0);
  worker("w", 1);
  EXPECT_EQ(book_.workers().free(), 1);
  EXPECT_TRUE(book_.workers().of("w").is_named()) << "its record still names the worker";
  EXPECT_THAT(book_.workers().of("w").open_places(), IsEmpty());
}

TEST_F(PoolBookTest, AWorkerThatDrainsHasNoFreeSlots) {
  worker("w", 4, {}, {}, /*takes=*/false);
  EXPECT_EQ(book_.workers().free(), 0);
  EXPECT_THAT(offers(job("a")), IsEmpty());
  worker("w", 4);
  EXPECT_EQ(book_.workers().free(), 4);
  book_.erase_worker("w");
  EXPECT_EQ(book_.workers().free(), 0);
  EXPECT_EQ(book_.workers().slots(), 0);
  EXPECT_TRUE(book_.empty());
}

TEST_F(PoolBookTest, APromiseHoldsUntilALaterVersionOfTheJobOrForSomeTime) {
  worker("w", 2);
  promise("a", "w");
  EXPECT_EQ(book_.workers().free(), 1);
  book_.put(job("a", 1), now_);
  EXPECT_EQ(book_.workers().free(), 1) << "the same version says nothing";
  book_.put(placed("a", "w"), now_);
  EXPECT_EQ(book_.workers().free(), 1) << "it is on record now";
  promise("b", "w");
  EXPECT_EQ(book_.workers().free(), 0);
  book_.put(job("b", 2), now_);
  EXPECT_EQ(book_.workers().free(), 1) << "somebody else has written the job";
  promise("c", "w");
  EXPECT_EQ(book_.expire(now_ + seconds(9)), seconds(1));
  EXPECT_EQ(book_.workers().free(), 0);
  book_.expire(now_ + seconds(10));
  EXPECT_EQ(book_.workers().free(), 1);
}

TEST_F(PoolBookTest, ARefusedStatusGivesItsPromiseBack) {
  worker("w", 1);
  promise("a", "w");
  book_.not_placed(job("b"), now_);
  book_.not_placed(job("a", 2), now_);
  EXPECT_EQ(book_.workers().free(), 0) << "another write was refused";
  book_.not_placed(job("a"), now_);
  EXPECT_EQ(book_.workers().free(), 1);
}

TEST_F(PoolBookTest, TheNextJobIsWokenIfTheLastOneDoesNotLook) {
  worker("w", 1);
  book_.ask(job("a"), 1, 0, now_);
  book_.ask(job("b"), 1, 0, now_);
  EXPECT_THAT(book_.wake(now_), ElementsAre("job-a"));
  now_ += SlotLine::kTurn;
  EXPECT_THAT(book_.wake(now_), ElementsAre("job-b"));
  EXPECT_THAT(offers(job("b")), ElementsAre("w"));
}

TEST_F(PoolBookTest, AnAttemptThatEndsMovesToTheClosedPlaces) {
  worker("w", 2);
  book_.put(placed("a", "w"), now_);
  EXPECT_EQ(book_.workers().of("w").open.count(id("a")), 1U);
  EXPECT_THAT(book_.workers().of("w").closed, IsEmpty());
  EXPECT_THAT(book_.put(placed("a", "w", 3, /*open=*/false), now_), ElementsAre("w"));
  EXPECT_THAT(book_.workers().of("w").open, IsEmpty());
  EXPECT_EQ(book_.workers().of("w").closed.count(id("a")), 1U);
  EXPECT_EQ(book_.workers().of("w").job_at(id("a")), "job-a");
  EXPECT_EQ(book_.workers().of("w").attempts(), 0);
  codecs::CachedJob next = placed("a", "x", 4);
  next.job.status.runs[0].attempt = 2;
  EXPECT_THAT(book_.put(next, now_), ElementsAre("w", "x"));
  EXPECT_FALSE(book_.workers().of("w").is_named());
}

TEST_F(PoolBookTest, AMessageReachesAllRunsAndKeepsTheirTime) {
  worker("w", 4);
  codecs::CachedJob many = placed("a", "w");
  many.job.status.attempt = 3;
  for (std::int64_t index = 1; index < 3; ++index) {
    many.job.status.runs.push_back(many.job.status.runs[0]);
    many.job.status.runs.back().index = index;
    many.job.status.runs.back().attempt = index + 1;
  }
  book_.put(many, now_);
  many.job.message = 7;
  EXPECT_THAT(book_.put(many, now_ + seconds(5)), ElementsAre("w"));
  EXPECT_EQ(book_.workers().of("w").open_places().size(), 3U);
  for (const auto& one : book_.workers().of("w").open_places()) EXPECT_EQ(one.message, 7);
  EXPECT_EQ(book_.workers().of("w").waited({"a", 2, 3}, now_ + seconds(5)), seconds(5));
}

TEST_F(PoolBookTest, ASecondPromiseToAJobReplacesTheFirst) {
  worker("w", 2);
  worker("x", 2);
  promise("a", "w");
  promise("a", "x");
  EXPECT_EQ(book_.workers().free(), 3);
  book_.expire(now_ + seconds(10));
  EXPECT_EQ(book_.workers().free(), 4);
}

TEST_F(PoolBookTest, AJobThatIsGoneGivesEverythingBack) {
  worker("w", 3);
  book_.put(placed("a", "w"), now_);
  promise("b", "w");
  book_.ask(job("b"), 2, 0, now_);
  EXPECT_THAT(book_.erase("a"), ElementsAre("w"));
  book_.erase("b");
  EXPECT_EQ(book_.workers().free(), 3);
  EXPECT_TRUE(book_.lines().names().empty());
}

TEST_F(PoolBookTest, AJobGetsSlotsOnlyAtItsTurn) {
  worker("w", 2);
  book_.ask(job("a"), 2, 0, now_);
  book_.ask(job("b"), 1, 0, now_);
  EXPECT_THAT(offers(job("b")), IsEmpty());
  EXPECT_THAT(offers(job("a")), ElementsAre("w", "w"));
  EXPECT_THAT(book_.wake(now_), ElementsAre("job-a"));
  promise("a", "w");
  book_.ask(job("a"), 0, 0, now_);
  EXPECT_THAT(book_.wake(now_), ElementsAre("job-b"));
  EXPECT_THAT(offers(job("b")), ElementsAre("w"));
}

// Its run waits for a worker of its own.
codecs::CachedJob alone(const std::string& uid, std::uint64_t version = 3) {
  codecs::CachedJob one = placed(uid, "gone", version, /*open=*/false);
  one.job.status.runs[0].alone = true;
  return one;
}

TEST_F(PoolBookTest, ARunThatNeedsAWorkerOfItsOwnGetsOneThatIsEmptyAndHasItAlone) {
  worker("w", 4, {"x"});
  worker("v", 4);
  book_.put(alone("a"), now_);
  EXPECT_THAT(book_.offer(alone("a"), now_).empty, IsEmpty()) << "it has not asked";
  book_.ask(alone("a"), 0, 1, now_);
  EXPECT_EQ(book_.lines().wanted(), 1);
  EXPECT_EQ(book_.lines().alone.wanted(), 1);
  EXPECT_TRUE(book_.may_wake());
  EXPECT_THAT(book_.wake(now_), ElementsAre("job-a"));
  const auto view = book_.offer(alone("a"), now_);
  ASSERT_EQ(view.empty.size(), 1u);
  EXPECT_EQ(view.empty[0].uid, "v");
  codecs::CachedJob next = alone("a", 4);
  next.job.status.attempt = 2;
  next.job.status.runs[0].attempt = 2;
  next.job.status.runs[0].worker_uid = "v";
  next.job.status.runs[0].next_attempt_time.reset();
  book_.ask(alone("a"), 0, 0, now_);
  EXPECT_TRUE(book_.placed(alone("a"), next.job.status, now_));
  EXPECT_TRUE(book_.workers().of("v").is_kept());
  EXPECT_EQ(book_.workers().free(), 3) << "the slots beside it are for nobody";
  book_.put(next, now_);
  EXPECT_EQ(book_.workers().free(), 3);
  EXPECT_EQ(offers(job("b")), std::vector<std::string>({"w"}));
  next.version = 5;
  next.job.status.runs.clear();
  book_.put(next, now_);
  EXPECT_EQ(book_.workers().free(), 7);
  EXPECT_FALSE(book_.workers().of("v").is_kept());
}

TEST_F(PoolBookTest, ATenthOfTheWorkersIsKeptFreeTheEmptiestFirst) {
  for (int n = 0; n < 11; ++n) {
    const std::string uid = "w" + std::to_string(10 + n);
    worker(uid, 2, n == 3 ? std::vector<std::string>() : std::vector<std::string>({"x" + uid}));
  }
  EXPECT_EQ(book_.workers().free(), 12);
  for (const char* const uid : {"c", "a", "b"}) {
    book_.put(alone(uid), now_);
    book_.ask(alone(uid), 0, 1, now_);
  }
  EXPECT_TRUE(book_.workers().of("w13").is_kept()) << "it is empty";
  EXPECT_TRUE(book_.workers().of("w10").is_kept());
  EXPECT_FALSE(book_.workers().of("w11").is_kept()) << "a tenth of eleven, rounded up, is two";
  EXPECT_EQ(book_.workers().free(), 9);
  EXPECT_THAT(book_.offer(alone("b"), now_).empty, IsEmpty()) << "the oldest is first";
  EXPECT_EQ(book_.offer(alone("a"), now_).empty.at(0).uid, "w13");
  worker("w11", 2);
  EXPECT_FALSE(book_.workers().of("w11").is_kept()) << "another one does not take its place";
  EXPECT_EQ(book_.offer(alone("b"), now_).empty.size(), 1u) << "no other run waits";
  book_.ask(job("z"), 99, 0, now_);
  EXPECT_THAT(book_.offer(alone("b"), now_).empty, IsEmpty()) << "one does";
  for (const char* const uid : {"a", "b", "c"}) book_.erase(uid);
  EXPECT_EQ(book_.workers().free(), 13) << "nothing is kept for nobody";
}

TEST_F(PoolBookTest, ARunThatIsAloneIsPartOfTheTenth) {
  worker("v", 2);
  worker("w", 2);
  codecs::CachedJob there = alone("a");
  there.job.status.runs[0].worker_uid = "v";
  there.job.status.runs[0].next_attempt_time.reset();
  book_.put(there, now_);
  book_.put(alone("b"), now_);
  book_.ask(alone("b"), 0, 1, now_);
  EXPECT_FALSE(book_.workers().of("w").is_kept());
  EXPECT_EQ(offers(job("z")).size(), 1u);
}

TEST_F(PoolBookTest, TheRunsOfOneJobSpreadAndJobsWithAKeyDoNot) {
  for (const char* const uid : {"u", "v", "w", "x"}) worker(uid, 4);
  codecs::CachedJob many = job("a");
  many.job.spec.completions = 100;
  many.job.spec.parallelism = 8;
  const auto got = offers(many);
  EXPECT_EQ(got.size(), 8u);
  EXPECT_GE(std::set<std::string>(got.begin(), got.end()).size(), 3u);
  codecs::CachedJob one = job("b");
  one.job.spec.pool->key = "customer-7";
  codecs::CachedJob other = job("c");
  other.job.spec.pool->key = "customer-7";
  EXPECT_EQ(offers(one), offers(other));
}

TEST_F(PoolBookTest, NoLookTakesMoreThanSixtyFourSlots) {
  for (int n = 0; n < 10; ++n) worker("w" + std::to_string(n), 16);
  codecs::CachedJob many = job("a");
  many.job.spec.completions = 1000;
  many.job.spec.parallelism = 1000;
  book_.ask(many, 1000, 0, now_);
  EXPECT_EQ(offers(many).size(), 64u);
}

TEST_F(PoolBookTest, ItKnowsHowLongAJobHasWaitedForItsEntry) {
  worker("w", 1);
  book_.ask(job("a"), 1, 0, now_);
  now_ += seconds(3);
  book_.offer(job("a"), now_);
  book_.ask(job("a"), 0, 0, now_);  // it takes the offer
  promise("a", "w");
  book_.put(placed("a", "w"), now_);
  EXPECT_EQ(book_.workers().of("w").waited(id("a"), now_ + seconds(1)), seconds(4));
  EXPECT_FALSE(book_.workers().of("w").waited(id("b"), now_));
}

TEST_F(PoolBookTest, TimeWithAFreeSlotCountsOnlyWhileAJobWaits) {
  worker("w", 1);
  EXPECT_EQ(book_.lag(now_ + seconds(9)), seconds(0));
  book_.ask(job("a"), 1, 0, now_);
  EXPECT_EQ(book_.lag(now_ + seconds(2)), seconds(2));
  now_ += seconds(2);
  book_.ask(job("a"), 0, 0, now_);
  promise("a", "w");
  EXPECT_EQ(book_.lag(now_ + seconds(2)), seconds(0));
}

TEST_F(PoolBookTest, TheRecordsOfAWorkerSayForHowLongItMayRun) {
  worker("w", 4);
  EXPECT_EQ(book_.offer(job("a"), now_).offers.at(0).lease_duration, seconds(30));
  book_.put(placed("a", "w"), now_);
  EXPECT_EQ(book_.workers().of("w").lease_duration(), seconds(3600))
      << "an older operator has not recorded it";
  codecs::CachedJob one = placed("b", "w");
  one.job.status.runs[0].worker_lease_duration = seconds(30);
  book_.put(one, now_);
  EXPECT_EQ(book_.workers().of("w").lease_duration(), seconds(30)) << "one record is enough";
  book_.erase_worker("w");
  EXPECT_EQ(book_.workers().of("w").lease_duration(), seconds(30));
  EXPECT_EQ(book_.workers().of("another").lease_duration(), seconds(3600));
}

// Jobs ask, get promises, run, wait for a next attempt and go; workers come, answer, drain and go.
TEST_F(PoolBookTest, ItsPartsAgreeAfterEachOfManyChanges) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const auto name = [&](const char* letters) { return std::string(1, letters[below(5)]); };
  std::uint64_t version = 1;
  for (int step = 0; step < 20'000; ++step) {
    now_ += seconds(below(3));
    const std::string of_job = name("abcde");
    const std::string at = name("vwxyz");
    codecs::CachedJob one = placed(of_job, at, ++version, /*open=*/below(2) > 0);
    one.job.status.runs[0].alone = below(4) == 0;
    switch (below(9)) {
      case 0:
        book_.put(one, now_);
        break;
      case 1:
        book_.put(job(of_job, version), now_);
        break;
      case 2:
        book_.erase(of_job);
        break;
      case 3:
        worker(at, 2, {name("abcde")}, {name("abcde")}, /*takes=*/below(3) > 0);
        break;
      case 4:
        book_.erase_worker(at);
        break;
      case 5:
        book_.ask(one, static_cast<std::int64_t>(below(3)), static_cast<std::int64_t>(below(2)),
                  now_);
        break;
      case 6:
        book_.placed(job(of_job, version), one.job.status, now_);
        break;
      case 7:
        book_.not_placed(job(of_job, version), now_);
        break;
      default:
        book_.offer(job(of_job, version), now_);
        book_.wake(now_);
    }
    ASSERT_NO_THROW(book_.check()) << "step " << step;
  }
}

TEST_F(PoolBookTest, PlacesOfWorkersWithoutLeasesAreMissing) {
  book_.put(placed("a", "gone"), now_);
  EXPECT_THAT(book_.workers().missing(), UnorderedElementsAre("gone"));
  worker("gone", 1);
  EXPECT_THAT(book_.workers().missing(), IsEmpty());
  EXPECT_EQ(book_.workers().free(), 0);
  book_.erase_worker("gone");
  EXPECT_THAT(book_.workers().missing(), UnorderedElementsAre("gone"));
  book_.erase("a");
  EXPECT_THAT(book_.workers().missing(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::pools
