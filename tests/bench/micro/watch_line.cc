// A line of a watch becomes the object that decisions are made on.
#include <benchmark/benchmark.h>

#include "tests/bench/micro/samples.h"

namespace holdfast::bench {
namespace {

void decode(benchmark::State& state, const kube::Kind& kind, const std::string& object) {
  const std::string line = watch_line(object);
  for (auto _ : state) {
    kube::WatchEvent event = kube::decode_watch_line(kind, line);
    if (!event.object) state.SkipWithError("the sample cannot be decoded");
    benchmark::DoNotOptimize(event);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(line.size() * state.iterations()));
}

void watch_line_of_a_job(benchmark::State& state) { decode(state, jobs(), running_job_text(1)); }
BENCHMARK(watch_line_of_a_job);

void watch_line_of_a_pod(benchmark::State& state) { decode(state, pods(), running_pod_text(1)); }
BENCHMARK(watch_line_of_a_pod);

}  // namespace
}  // namespace holdfast::bench
