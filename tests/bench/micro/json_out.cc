// The bodies of the writes.
#include <benchmark/benchmark.h>

#include "operator/injection/pod_body.h"
#include "tests/bench/micro/samples.h"

namespace holdfast::bench {
namespace {

std::shared_ptr<const codecs::CachedJob> running_job() {
  return std::static_pointer_cast<const codecs::CachedJob>(
      codecs::decode_job(JsonDocument::parse(running_job_text(1)).value()));
}

void json_out_of_a_status(benchmark::State& state) {
  const auto job = running_job();
  for (auto _ : state) {
    std::string body = codecs::status_update_body(job->job, *job->texts, job->job.status);
    benchmark::DoNotOptimize(body);
  }
}
BENCHMARK(json_out_of_a_status);

void json_out_of_a_pod(benchmark::State& state) {
  const auto job = running_job();
  for (auto _ : state) {
    Result<std::string> body = injection::pod_body(job->job, job->texts->pod_template,
                                                   {1, "encode-1-abcde"}, "", "7-of-32");
    if (!body.ok()) state.SkipWithError("the template of the sample is not right");
    benchmark::DoNotOptimize(body);
  }
}
BENCHMARK(json_out_of_a_pod);

}  // namespace
}  // namespace holdfast::bench
