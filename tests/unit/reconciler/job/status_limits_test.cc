// The size of the status of a job whose runs have places on workers.
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
void leave_checkpoint(WriteStatus& write, std::size_t position, const std::string& checkpoint) {
  Run& run = write.status.runs[position];
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
    for (std::size_t position = 0; position < 1000; ++position) {
      leave_checkpoint(write, position, repeated(text, 1024));
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
  for (std::size_t position = 0; position < 20; ++position) {
    leave_checkpoint(write, position, std::string(1024, '\x01'));
    write.status.runs[position].progress = std::string(256, 'x');
  }
  const Status before = write.status;
  keep_within_limits(write, Status());
  EXPECT_EQ(write.status, before);
}

TEST(WorkersLimits, ProgressGoesBeforeCheckpoints) {
  WriteStatus write = write_of_runs(700);
  for (std::size_t position = 0; position < 700; ++position) {
    leave_checkpoint(write, position, std::string(200, 'x'));
    write.status.runs[position].progress = std::string(256, 'x');
  }
  keep_within_limits(write, Status());
  EXPECT_EQ(checkpoints(write.status.runs), 700);
  EXPECT_TRUE(write.status.runs[0].progress.empty());
}

TEST(WorkersLimits, ACheckpointOnRecordStaysAndANewOneIsLeftOut) {
  WriteStatus write = write_of_runs(1000);
  for (std::size_t position = 500; position < 1000; ++position) {
    leave_checkpoint(write, position, std::string(1024, '\x01'));
  }
  keep_within_limits(write, Status());
  const std::int64_t recorded = checkpoints(write.status.runs);
  ASSERT_GT(recorded, 1);
  const auto before = write.status.runs;
  // The earlier attempts end last, and one starts its next attempt at once. Run 500 had a
  // checkpoint before.
  write.ended.clear();
  for (std::size_t position = 0; position < 64; ++position) {
    leave_checkpoint(write, position, std::string(1024, '\x01'));
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
  for (std::size_t position = 500; position < 650; ++position) {
    leave_checkpoint(write, position, std::string(300, 'x'));
  }
  keep_within_limits(write, Status());
  const Status before = write.status;
  ASSERT_EQ(checkpoints(before.runs), 150) << "all have room";
  const auto leave_next = [&](const std::string& checkpoint) {
    write.ended.clear();
    for (std::size_t position = 500; position < 650; ++position) {
      leave_checkpoint(write, position, checkpoint);
      write.status.runs[position].attempts = 2;
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

}  // namespace
}  // namespace holdfast::reconciler::testing
