// What an event costs that concerns one worker, job or slot of a large pool of warm workers.
#include "operator/pools/pool_book.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace holdfast::bench {
namespace {

using codecs::CachedJob;
using pools::PoolBook;

constexpr int kWorkers = 8;
constexpr std::int64_t kSlots = 16;
const SteadyTime kNow(std::chrono::hours(1));

std::string worker(std::int64_t number) { return "lease-" + std::to_string(number % kWorkers); }

CachedJob job(std::int64_t number) {
  CachedJob job;
  const std::string digits = std::to_string(100'000 + number);
  job.namespace_ = job.job.namespace_ = "media";
  job.name = job.job.name = "resize-" + digits;
  job.uid = job.job.uid = "8f14e45f-ceea-467f-a0e6-" + digits;
  job.version = 1;
  job.job.created = Time(std::chrono::seconds(number));
  job.job.spec.pool = reconciler::PoolRef{"thumbnails", "", std::nullopt};
  job.job.status.phase = reconciler::Phase::kPending;
  return job;
}

void add_run(CachedJob& job, std::int64_t index, bool is_open) {
  reconciler::Run run;
  run.index = index;
  run.attempt = index + 1;
  run.worker_uid = worker(index + job.name.back());
  if (!is_open) run.next_attempt_time = Time(std::chrono::hours(1));
  job.job.status.runs.push_back(run);
  job.job.status.attempt = index + 1;
}

void add_workers(PoolBook& book) {
  for (int number = 0; number < kWorkers; ++number) {
    book.put_worker({"pod-" + std::to_string(number), worker(number)}, kSlots, true, {}, {});
  }
}

// A worker's Lease has changed, while so many jobs wait in back-off: each names its last worker.
void a_worker_speaks(benchmark::State& state) {
  PoolBook book;
  add_workers(book);
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    CachedJob one = job(number);
    add_run(one, 0, /*is_open=*/false);
    book.put(one, kNow);
  }
  for (auto _ : state) {
    book.put_worker({"pod-0", worker(0)}, kSlots, true, {}, {});
    benchmark::DoNotOptimize(book.workers().of(worker(0)).open_places());
    benchmark::DoNotOptimize(book.workers().of(worker(0)).attempts());
  }
}
BENCHMARK(a_worker_speaks)->Arg(0)->Arg(1000)->Arg(20'000);

// The message of a job with so many open runs has changed.
void a_large_job_is_edited(benchmark::State& state) {
  PoolBook book;
  add_workers(book);
  CachedJob many = job(1);
  for (std::int64_t index = 0; index < state.range(0); ++index) add_run(many, index, true);
  for (auto _ : state) {
    ++many.job.message;
    ++many.version;
    benchmark::DoNotOptimize(book.put(many, kNow));
  }
}
BENCHMARK(a_large_job_is_edited)->Arg(10)->Arg(1000);

// So many jobs wait, and all that there are slots for were woken. Another event wakes the next
// ones, and the last job looks.
void an_event_while_jobs_wait(benchmark::State& state) {
  PoolBook book;
  for (int number = 0; number < 125; ++number) {
    book.put_worker({"pod", "lease-" + std::to_string(number)}, kSlots, true, {}, {});
  }
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    book.ask(job(number), 1, 0, kNow);
  }
  const CachedJob last = job(state.range(0));
  book.wake(kNow);
  for (auto _ : state) {
    benchmark::DoNotOptimize(book.wake(kNow));
    benchmark::DoNotOptimize(book.offer(last, kNow));
  }
}
BENCHMARK(an_event_while_jobs_wait)->Arg(2000)->Arg(20'000);

// The same a second later: none of those that were woken has looked.
void an_event_while_jobs_are_late(benchmark::State& state) {
  PoolBook book;
  for (int number = 0; number < 125; ++number) {
    book.put_worker({"pod", "lease-" + std::to_string(number)}, kSlots, true, {}, {});
  }
  SteadyTime now = kNow;
  for (std::int64_t number = 0; number < state.range(0); ++number) {
    book.ask(job(number), 1, 0, now);
  }
  while (!book.wake(now).empty()) now += std::chrono::seconds(2);
  const CachedJob last = job(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(book.wake(now));
    benchmark::DoNotOptimize(book.lines().wanted());
  }
}
BENCHMARK(an_event_while_jobs_are_late)->Arg(2000)->Arg(20'000);

}  // namespace
}  // namespace holdfast::bench
