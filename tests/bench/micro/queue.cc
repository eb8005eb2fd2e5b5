// A key through the work queue.
#include "client/controller/work_queue.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "tests/support/manual_loop.h"

namespace holdfast::bench {
namespace {

std::vector<std::string> keys(std::int64_t count) {
  std::vector<std::string> found;
  for (std::int64_t number = 0; number < count; ++number) {
    found.push_back("media/encode-" + std::to_string(number));
  }
  return found;
}

void work_off(controller::WorkQueue& queue, test::ManualLoop& loop) {
  loop.run_ready();
  while (const std::optional<std::string> key = queue.take()) queue.done(*key);
}

void queue_add_take_done(benchmark::State& state) {
  test::ManualLoop loop;
  controller::WorkQueue queue(loop, {}, [] {});
  const std::vector<std::string> all = keys(state.range(0));
  for (auto _ : state) {
    for (const std::string& key : all) queue.add(key);
    work_off(queue, loop);
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(queue_add_take_done)->Arg(100)->Arg(10'000);

// Every waiting job has a timer; a fresh event moves it.
void queue_add_after(benchmark::State& state) {
  test::ManualLoop loop;
  controller::WorkQueue queue(loop, {}, [] {});
  const std::vector<std::string> all = keys(state.range(0));
  for (auto _ : state) {
    for (const std::string& key : all) queue.add_after(key, std::chrono::seconds(40));
    for (const std::string& key : all) queue.add(key);
    work_off(queue, loop);
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(queue_add_after)->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace holdfast::bench
