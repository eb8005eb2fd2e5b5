// One decision: what each reconcile costs beside its requests.
#include "reconciler/job/decide.h"

#include <benchmark/benchmark.h>

#include "tests/bench/micro/samples.h"

namespace holdfast::bench {
namespace {

constexpr std::chrono::seconds kAWhile{5};

reconciler::JobView view_of(const std::string& job, const std::string& pod) {
  const auto parsed = [](const std::string& text) { return JsonDocument::parse(text).value(); };
  reconciler::JobView view;
  view.job =
      std::static_pointer_cast<const codecs::CachedJob>(codecs::decode_job(parsed(job)))->job;
  if (!pod.empty()) {
    view.pods.push_back(
        std::static_pointer_cast<const codecs::CachedPod>(codecs::decode_pod(parsed(pod)))->pod);
    view.job.status.begun().pod_name = view.pods[0].name;
  }
  return view;
}

void decide(benchmark::State& state, const reconciler::JobView& view, std::size_t writes) {
  const Time now = view.job.created + kAWhile;
  for (auto _ : state) {
    reconciler::Decision decision = reconciler::decide(view, now);
    if (decision.writes.size() != writes) state.SkipWithError("not what the sample is for");
    benchmark::DoNotOptimize(decision);
  }
}

void decide_a_new_job(benchmark::State& state) { decide(state, view_of(job_text(1), ""), 2); }
BENCHMARK(decide_a_new_job);

void decide_a_running_job(benchmark::State& state) {
  reconciler::JobView view = view_of(running_job_text(1), running_pod_text(1));
  // What the pod's start puts on record is there: nothing is to be written.
  const Time now = view.job.created + kAWhile;
  const reconciler::Decision first = reconciler::decide(view, now);
  view.job.status = std::get<reconciler::WriteStatus>(first.writes.at(0)).status;
  decide(state, view, 0);
}
BENCHMARK(decide_a_running_job);

void decide_an_ended_pod(benchmark::State& state) {
  reconciler::JobView view = view_of(running_job_text(1), running_pod_text(1));
  view.pods[0].phase = reconciler::PodPhase::kSucceeded;
  view.pods[0].containers[0].terminated.emplace();
  decide(state, view, 2);
}
BENCHMARK(decide_an_ended_pod);

}  // namespace
}  // namespace holdfast::bench
