// The size of the status of a job whose runs have places on workers, and what such a job takes of
// its queue while it has no pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reconciler/job/status_limits.h"
#include "reconciler/run/slot.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// For each text that the API server's JSON has an escape for: how many bytes that takes.
const std::map<std::string, std::size_t> kEscapes = {
    {"\x01", 6}, {"<", 6}, {"\"", 2}, {"\n", 2}, {"\xe2\x80\xa8", 6}, {"x", 1}};

std::string repeated(const std::string& text, std::size_t bytes) {
  std::string all;
  while (all.size() + text.size() <= bytes) all += text;
  return all;
}

// Its attempt has ended on a worker, and is the run's `attempts`-th one.
Run ended_run(std::int64_t index, std::int64_t attempts = 1) {
  Run run;
  run.index = index;
  run.attempt = index + 1;
  run.attempts = attempts;
  run.start_time = now() - seconds(90);
  run.next_attempt_time = now();
  run.worker_name = std::string(63, 'w');
  run.worker_uid = kUid;
  return run;
}

WriteStatus write_of_runs(std::int64_t count) {
  WriteStatus write;
  for (std::int64_t index = 0; index < count; ++index) {
    write.status.runs.push_back(ended_run(index));
  }
  return write;
}

// The run's attempt ends with this write and leaves a checkpoint.
void leave_checkpoint(WriteStatus& write, std::size_t place, const std::string& checkpoint) {
  Run& run = write.status.runs[place];
  run.checkpoint = checkpoint;
  write.ended.push_back({run.index, Outcome::kFailed});
}

// What the texts of all runs take as JSON; each checkpoint repeats this text.
std::size_t bytes_of(const std::vector<Run>& runs, const std::string& text) {
  std::size_t bytes = 0;
  for (const Run& run : runs) {
    bytes += run.worker_name.size() + run.worker_uid.size() +
             run.checkpoint.size() / text.size() * kEscapes.at(text);
  }
  return bytes;
}

std::int64_t checkpoints(const std::vector<Run>& runs) {
  return std::count_if(runs.begin(), runs.end(),
                       [](const Run& run) { return !run.checkpoint.empty(); });
}

TEST(WorkersLimits, TheLongestCheckpointsOfAThousandRunsFit) {
  for (const auto& [text, escape] : kEscapes) {
    SCOPED_TRACE(text);
    WriteStatus write = write_of_runs(1000);
    for (std::size_t place = 0; place < 1000; ++place) {
      leave_checkpoint(write, place, repeated(text, 1024));
    }
    keep_within_limits(write, Status());
    EXPECT_LE(bytes_of(write.status.runs, text), kRunsBytes);
    EXPECT_GT(checkpoints(write.status.runs), 0) << "as many stay as fit";
    EXPECT_FALSE(write.status.runs[0].checkpoint.empty()) << "the oldest attempt's";
    EXPECT_TRUE(write.status.runs[999].checkpoint.empty());
    const Status kept = write.status;
    keep_within_limits(write.status);
    EXPECT_EQ(write.status, kept) << "it causes no further write";
  }
}

TEST(WorkersLimits, AFewRunsKeepTheirCheckpointsAndProgress) {
  WriteStatus write = write_of_runs(20);
  for (std::size_t place = 0; place < 20; ++place) {
    leave_checkpoint(write, place, std::string(1024, '\x01'));
    write.status.runs[place].progress = std::string(256, 'x');
  }
  const Status before = write.status;
  keep_within_limits(write, Status());
  EXPECT_EQ(write.status, before);
}

TEST(WorkersLimits, ProgressGoesBeforeCheckpoints) {
  WriteStatus write = write_of_runs(700);
  for (std::size_t place = 0; place < 700; ++place) {
    leave_checkpoint(write, place, std::string(200, 'x'));
    write.status.runs[place].progress = std::string(256, 'x');
  }
  keep_within_limits(write, Status());
  EXPECT_EQ(checkpoints(write.status.runs), 700);
  EXPECT_TRUE(write.status.runs[0].progress.empty());
}

TEST(WorkersLimits, ACheckpointOnRecordStaysAndANewOneIsLeftOut) {
  WriteStatus write = write_of_runs(1000);
  for (std::size_t place = 500; place < 1000; ++place) {
    leave_checkpoint(write, place, std::string(1024, '\x01'));
  }
  keep_within_limits(write, Status());
  const std::int64_t recorded = checkpoints(write.status.runs);
  ASSERT_GT(recorded, 1);
  const auto before = write.status.runs;
  // The earlier attempts end last, and one starts its next attempt at once. Run 500 had a
  // checkpoint before.
  write.ended.clear();
  for (std::size_t place = 0; place < 64; ++place) {
    leave_checkpoint(write, place, std::string(1024, '\x01'));
  }
  write.status.runs[0].attempts = 2;
  write.status.runs[0].attempt = 1001;
  write.status.runs[0].next_attempt_time.reset();
  write.status.runs[500].attempts = 2;
  write.status.runs[500].checkpoint = std::string(1024, '\x02');
  write.ended.push_back({500, Outcome::kFailed});
  keep_within_limits(write, Status());
  EXPECT_EQ(checkpoints(write.status.runs), recorded);
  EXPECT_EQ(write.status.runs[500].checkpoint, std::string(1024, '\x02')) << "it takes its place";
  EXPECT_EQ(write.status.runs[501].checkpoint, before[501].checkpoint);
  EXPECT_TRUE(write.status.runs[0].checkpoint.empty());
}

TEST(WorkersLimits, ARunWhoseNewCheckpointIsLeftOutKeepsTheOneOnRecord) {
  WriteStatus write = write_of_runs(1000);
  for (std::size_t place = 500; place < 650; ++place) {
    leave_checkpoint(write, place, std::string(300, 'x'));
  }
  keep_within_limits(write, Status());
  const Status before = write.status;
  ASSERT_EQ(checkpoints(before.runs), 150) << "all have room";
  const auto leave_next = [&](const std::string& checkpoint) {
    write.ended.clear();
    for (std::size_t place = 500; place < 650; ++place) {
      leave_checkpoint(write, place, checkpoint);
      write.status.runs[place].attempts = 2;
    }
    keep_within_limits(write, before);
    EXPECT_LE(bytes_of(write.status.runs, "x"), kRunsBytes);
  };
  leave_next(std::string(1024, 'y'));
  const auto has = [&](const std::string& text) {
    return std::count_if(write.status.runs.begin(), write.status.runs.end(),
                         [&](const auto& run) { return run.checkpoint == text; });
  };
  EXPECT_GT(has(std::string(1024, 'y')), 0) << "as many new ones as fit";
  EXPECT_EQ(has(std::string(1024, 'y')) + has(std::string(300, 'x')), 150);
  // The runs of the next stage start from the beginning.
  write.status.stage = 1;
  leave_next(std::string(1024, 'z'));
  EXPECT_EQ(has(std::string(300, 'x')), 0);
}

TEST(WorkersLimits, WorkerNamesCount) {
  WriteStatus write = write_of_runs(1000);
  for (auto& run : write.status.runs) run.progress = std::string(100, 'x');
  keep_within_limits(write, Status());
  EXPECT_TRUE(write.status.runs[0].progress.empty());
}

// As the operator decodes a job with workerPool and queue.
JobView queued_and_pooled() {
  JobView view = new_job();
  view.job.spec.pool = PoolRef{"thumbnails", "", std::nullopt};
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.spec.first_container = kSlotContainer;
  view.job.has_pool = true;
  view.job.queue = QueueRef{"encode", 0, ""};
  view.observed.pool.wait = {seconds(60), seconds(60)};
  return view;
}

TEST(WorkersLimits, AJobWithoutItsPoolAsksForNoPermitUntilThereIsOne) {
  JobView view = queued_and_pooled();
  view.observed.pool.no_pool = true;
  EXPECT_FALSE(settle(view).awaits_permit);
  view.job.status = after(view);
  ASSERT_TRUE(view.job.status.waiting);
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPoolMissing);
  EXPECT_TRUE(view.job.status.holds("Stalled"));
  EXPECT_FALSE(settle(view).awaits_permit);
  view.observed.pool.no_pool = false;
  EXPECT_TRUE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 0);
}

TEST(WorkersLimits, AJobOfAFullPoolAsksForItsPermitFirst) {
  JobView view = queued_and_pooled();
  EXPECT_TRUE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 0);
  view.observed.permit.admitted = true;
  EXPECT_FALSE(settle(view).awaits_permit);
  EXPECT_EQ(settle(view).awaits_slots, 1);
}

TEST(WorkersLimits, AnAdmittedJobWithoutItsPoolGivesItsPermitBackAtOnceAndSaysWhy) {
  JobView view = queued_and_pooled();
  view.observed.permit.admitted = true;
  view.observed.pool.no_pool = true;
  view.observed.pool.wait = {};
  view.observed.since_write = Duration::zero();
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.attempt, 1) << "nobody can start it with this admission any more";
  EXPECT_EQ(view.job.status.waiting->reason, Reason::kPoolMissing);
  EXPECT_TRUE(view.job.status.runs.empty());
  view.observed.permit.admitted = false;
  EXPECT_FALSE(settle(view).awaits_permit);
  view.observed.pool.no_pool = false;
  EXPECT_TRUE(settle(view).awaits_permit) << "it asks again once there is a pool";
}

// As long as it says Queued, its queue would admit it again and again.
TEST(WorkersLimits, AJobThatSaidThatItIsQueuedDoesNotSayItWithTheWriteThatGivesThePermitBack) {
  for (const Phase phase : {Phase::kPending, Phase::kBackoff}) {
    for (const Duration left : {Duration::zero(), Duration(seconds(60))}) {
      JobView view = queued_and_pooled();
      if (phase == Phase::kBackoff) {
        view.job.status = job_in(Phase::kBackoff).job.status;
        for (auto& run : view.job.status.runs) run.next_attempt_time = now() + left;
      }
      view.job.status.phase = phase;
      view.job.status.waiting = Waiting{Reason::kQueued, "its queue is full", "it waits", now()};
      view.observed.permit.admitted = true;
      view.observed.pool.no_pool = true;
      view.observed.pool.wait = {};
      view.observed.since_write = Duration::zero();
      const Status next = after(view);
      EXPECT_EQ(next.attempt, view.job.status.attempt + 1);
      EXPECT_FALSE(next.says_queued());
    }
  }
}

TEST(WorkersLimits, AJobWithAnOpenRunKeepsItsPermitWithoutItsPool) {
  JobView view = job_in(Phase::kRunning);
  const JobView pooled = queued_and_pooled();
  view.job.spec.pool = pooled.job.spec.pool;
  view.job.queue = pooled.job.queue;
  view.observed.permit.admitted = true;
  view.observed.pool.no_pool = true;
  for (const auto& write : all<WriteStatus>(settle(view))) {
    EXPECT_EQ(write.status.attempt, view.job.status.attempt);
  }
}

TEST(WorkersLimits, ANextAttemptWithoutItsPoolAsksForNoPermit) {
  JobView view = job_in(Phase::kBackoff);
  const JobView pooled = queued_and_pooled();
  view.job.spec.pool = pooled.job.spec.pool;
  view.job.queue = pooled.job.queue;
  view.observed = pooled.observed;
  view.observed.pool.no_pool = true;
  for (auto& run : view.job.status.runs) run.next_attempt_time = now();
  for (const auto policy :
       {PodReplacementPolicy::kFailed, PodReplacementPolicy::kTerminatingOrFailed}) {
    view.job.spec.pod_replacement = policy;
    EXPECT_FALSE(settle(view).awaits_permit);
    EXPECT_EQ(after(view).waiting->reason, Reason::kPoolMissing);
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
