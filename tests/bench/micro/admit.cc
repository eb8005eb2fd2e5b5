// A job of a queue ends, and the next of very many waiting jobs is admitted and starts.
#include <benchmark/benchmark.h>

#include <deque>
#include <string>
#include <utility>

#include "reconciler/queue/admission.h"

namespace holdfast::bench {
namespace {

using reconciler::QueuedJob;

constexpr std::int64_t kConcurrency = 50;

// A claimed queue, and what its owner does with it.
struct Queue {
  reconciler::QueueView view;
  reconciler::Line line;
  std::int64_t created = 0;
  std::deque<std::string> running;  // UIDs

  Queue() {
    view.status.holder = view.self = "member-1/1";
    view.claimed = view.may_count = true;
    view.since_write = std::chrono::hours(1);
    view.now = Time(std::chrono::hours(500'000));
    view.spec.concurrency = kConcurrency;
  }

  void add(const std::string& key, std::int64_t priority = 0) {
    const std::string digits = std::to_string(1'000'000'000 + ++created);
    QueuedJob job;
    job.uid = "8c5d3a52-1f4e-4b7e-9a53-0d" + digits;
    job.name = "encode-" + digits;
    job.key = key;
    job.priority = priority;
    // A hundred jobs are created in one second, and go by their UIDs.
    job.created = job.since = view.now + std::chrono::seconds(created / 100);
    job.waits = true;
    line.put(std::move(job));
  }

  // Admits as many jobs as it can, and starts them. How many.
  std::size_t start() {
    reconciler::QueueDecision decision = reconciler::decide_queue(view, line);
    if (!decision.write) return 0;
    view.status = std::move(*decision.write);
    line.set_admissions(view.status.admitting);
    for (const std::string& uid : decision.admitted) {
      QueuedJob job = *line.find(uid);
      job.waits = false;
      job.holds = true;
      ++job.attempt;
      line.put(std::move(job));
      running.push_back(uid);
    }
    return decision.admitted.size();
  }

  // The oldest running job has ended. Whether one other has started.
  bool end_one() {
    line.erase(running.front());
    running.pop_front();
    return start() == 1;
  }
};

// A new job comes for each one that ends, so that the number of waiting ones stays the same.
void next_admission(benchmark::State& state) {
  const std::int64_t keys = state.range(1);
  Queue queue;
  if (keys > 0) queue.view.spec.concurrency_per_key = 1;
  const auto add = [&] {
    queue.add(keys > 0 ? "customer-" + std::to_string(queue.created % keys) : "");
  };
  for (std::int64_t i = 0; i < state.range(0) + kConcurrency; ++i) add();
  queue.start();
  for (auto _ : state) {
    if (!queue.end_one()) state.SkipWithError("the next job was not admitted");
    add();
  }
}
BENCHMARK(next_admission)
    ->ArgNames({"waiting", "keys"})
    ->Args({1'000, 0})
    ->Args({50'000, 0})
    ->Args({50'000, 100})
    ->Args({50'000, 50'000})
    ->Unit(benchmark::kMicrosecond);

// All other waiting jobs come first, and their key is full.
void next_admission_behind_a_full_key(benchmark::State& state) {
  Queue queue;
  queue.view.spec.concurrency_per_key = 1;
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.add("full", 1);
  queue.start();
  queue.running.pop_front();  // this one never ends
  std::int64_t customers = 0;
  const auto add = [&] { queue.add("customer-" + std::to_string(++customers)); };
  for (std::int64_t i = 0; i < kConcurrency; ++i) add();
  queue.start();
  for (auto _ : state) {
    if (!queue.end_one()) state.SkipWithError("the next job was not admitted");
    add();
  }
}
BENCHMARK(next_admission_behind_a_full_key)
    ->ArgName("waiting")
    ->Arg(50'000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace holdfast::bench
