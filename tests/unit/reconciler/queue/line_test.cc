// The order of a queue, its permits by key, and its admissions.
#include "reconciler/queue/line.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/unit/reconciler/rng.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

QueuedJob waiting(const std::string& uid, std::int64_t priority = 0, int created = 0) {
  QueuedJob job;
  job.uid = uid;
  job.name = "job-" + uid;
  job.priority = priority;
  job.created = now() + seconds(created);
  job.waits = true;
  job.since = job.created;
  return job;
}

QueuedJob running(const std::string& uid, const std::string& key = "") {
  QueuedJob job = waiting(uid);
  job.waits = false;
  job.holds = true;
  job.key = key;
  job.attempt = 1;
  return job;
}

QueuedJob with_key(QueuedJob job, const std::string& key) {
  job.key = key;
  return job;
}

TEST(Line, GoesByPriorityThenByCreationThenByUid) {
  Line line;
  line.put(waiting("d", 0, 5));
  line.put(waiting("c", 0, 1));
  line.put(waiting("b", 0, 1));
  line.put(waiting("a", 7, 9));
  EXPECT_EQ(line.head(10), (std::vector<std::string>{"job-a", "job-b", "job-c", "job-d"}));
  EXPECT_EQ(line.head(2).size(), 2u);
  EXPECT_EQ(line.next()->uid, "a");
  EXPECT_EQ(line.waiting(), 4);
  EXPECT_EQ(line.oldest_since(), now() + seconds(1));
}

TEST(Line, APriorityThatChangesCountsAtOnce) {
  Line line;
  line.put(waiting("a"));
  line.put(waiting("b"));
  line.put(waiting("b", 1));
  EXPECT_EQ(line.next()->uid, "b");
  line.put(waiting("b", -1));
  EXPECT_EQ(line.next()->uid, "a");
}

TEST(Line, CountsPermitsThatAreHeldAndThoseThatAreGiven) {
  Line line;
  line.put(running("a"));
  line.put(waiting("b"));
  line.admit("b");
  EXPECT_EQ(line.used(), 2);
  EXPECT_EQ(line.waiting(), 0);
  EXPECT_EQ(line.open_admissions(), (std::vector<Admission>{{"b", 0}}));
}

// S19: the permit is given until the job has moved, and then its phase says so.
TEST(Line, AnAdmissionEndsWhenItsJobHasAnotherAttemptOrIsOver) {
  Line line;
  line.put(waiting("a"));
  line.admit("a");
  line.put(waiting("a"));
  EXPECT_EQ(line.used(), 1) << "the job has not moved";
  QueuedJob moved = running("a");
  line.put(moved);
  EXPECT_EQ(line.used(), 1) << "counted once";
  EXPECT_TRUE(line.open_admissions().empty());
  moved.holds = false;
  line.put(moved);
  EXPECT_EQ(line.used(), 0);

  line.put(waiting("c"));
  line.admit("c");
  line.erase("c");
  EXPECT_EQ(line.used(), 0);
  EXPECT_TRUE(line.open_admissions().empty());
}

TEST(Line, AFullKeyIsSkippedAndNotWaitedFor) {
  Line line;
  line.limit_keys(1);
  line.put(running("r", "x"));
  line.put(with_key(waiting("a", 9), "x"));
  line.put(with_key(waiting("b"), "y"));
  line.put(with_key(waiting("c"), "y"));
  ASSERT_TRUE(line.next());
  EXPECT_EQ(line.next()->uid, "b");
  line.admit("b");
  EXPECT_EQ(line.next(), nullptr) << "both keys are full";
  line.erase("r");
  EXPECT_EQ(line.next()->uid, "a");
}

TEST(Line, ALimitOfKeysThatChangesCountsAtOnce) {
  Line line;
  line.put(running("r", "x"));
  line.put(with_key(waiting("a"), "x"));
  EXPECT_EQ(line.next()->uid, "a") << "no limit";
  line.limit_keys(1);
  EXPECT_EQ(line.next(), nullptr);
  line.limit_keys(2);
  EXPECT_EQ(line.next()->uid, "a");
  line.limit_keys(std::nullopt);
  EXPECT_EQ(line.next()->uid, "a");
}

TEST(Line, ForgetsAdmissionsThatAreNoLongerOnRecord) {
  Line line;
  line.put(waiting("a"));
  line.put(waiting("b"));
  line.admit("a");
  line.set_admissions({{"b", 0}});
  EXPECT_EQ(line.next()->uid, "a");
  EXPECT_EQ(line.used(), 1);
  line.set_admissions({{"b", 3}});
  EXPECT_EQ(line.used(), 1) << "the cache may be older than the admission";
  QueuedJob moved = waiting("b");
  moved.attempt = 4;
  line.put(moved);
  EXPECT_EQ(line.used(), 0) << "the admission was for an earlier attempt";
}

// Against a count that walks all jobs.
TEST(Line, AgreesWithASimpleCountAfterAnyChanges) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    Line line;
    std::map<std::string, QueuedJob> jobs;
    std::map<std::string, std::int64_t> admitted;
    std::optional<std::int64_t> limit;
    for (int step = 0; step < 200; ++step) {
      const std::string uid = "u" + std::to_string(rng.below(12));
      switch (rng.below(6)) {
        case 0:
          jobs.erase(uid);
          line.erase(uid);
          break;
        case 1:
          limit = rng.below(3) == 0
                      ? std::nullopt
                      : std::optional<std::int64_t>(1 + static_cast<std::int64_t>(rng.below(3)));
          line.limit_keys(limit);
          break;
        case 2:
          if (const QueuedJob* const next = line.next()) {
            admitted[next->uid] = next->attempt;
            line.admit(std::string(next->uid));
          }
          break;
        default: {
          QueuedJob job =
              waiting(uid, static_cast<std::int64_t>(rng.below(3)), static_cast<int>(rng.below(4)));
          job.key = "k" + std::to_string(rng.below(3));
          job.attempt = static_cast<std::int64_t>(rng.below(3));
          job.holds = rng.below(3) == 0;
          job.waits = rng.below(3) != 0;
          jobs[uid] = job;
          line.put(job);
        }
      }
      const auto uses = [&](const QueuedJob& job) {
        const auto found = admitted.find(job.uid);
        return job.holds || (found != admitted.end() && found->second >= job.attempt);
      };
      std::map<std::string, std::int64_t> keys;
      std::int64_t used = 0;
      for (const auto& [id, job] : jobs) {
        if (!uses(job)) continue;
        ++used;
        ++keys[job.key];
      }
      const QueuedJob* best = nullptr;
      std::int64_t lines = 0;
      for (const auto& [id, job] : jobs) {
        if (uses(job) || !job.waits) continue;
        ++lines;
        if (limit && keys[job.key] >= *limit) continue;
        if (!best || std::tie(best->priority, job.created, job.uid) <
                         std::tie(job.priority, best->created, best->uid)) {
          best = &job;
        }
      }
      ASSERT_NO_THROW(line.check()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(line.used(), used) << "seed " << seed << ", step " << step;
      ASSERT_EQ(line.waiting(), lines) << "seed " << seed << ", step " << step;
      ASSERT_EQ(line.next() ? line.next()->uid : "", best ? best->uid : "")
          << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
