// What a running job with ten messages of so many bytes in its history takes in the cache.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include "tests/bench/micro/samples.h"
#include "tests/support/json_document.h"

namespace holdfast::bench {
namespace {

Json job_with_messages(std::int64_t number, std::size_t bytes) {
  Json job = Json::parse(running_job_text(number));
  for (int attempt = 1; attempt <= 10; ++attempt) {
    job["status"]["history"].push_back({{"attempt", attempt},
                                        {"outcome", "Failed"},
                                        {"reason", "Error"},
                                        {"exitCode", 1},
                                        {"podName", "encode-" + std::to_string(attempt)},
                                        {"startTime", "2026-06-01T11:00:01Z"},
                                        {"endTime", "2026-06-01T11:00:02Z"},
                                        {"message", std::string(bytes, 'x')}});
  }
  job["status"]["attempt"] = 11;
  return job;
}

void cached_job_with_messages(benchmark::State& state) {
  constexpr std::int64_t kJobs = 1000;
  double bytes = 0;
  for (auto _ : state) {
    std::vector<kube::ObjectPtr> jobs;
    jobs.reserve(kJobs);
    const std::size_t before = mallinfo2().uordblks;
    for (std::int64_t number = 0; number < kJobs; ++number) {
      jobs.push_back(codecs::decode_job(
          document(job_with_messages(number, static_cast<std::size_t>(state.range(0))))));
    }
    bytes = static_cast<double>(mallinfo2().uordblks - before) / kJobs;
  }
  state.counters["bytes_per_job"] = bytes;
}
BENCHMARK(cached_job_with_messages)->Arg(0)->Arg(500)->Arg(1500)->Arg(2000)->Iterations(1);

}  // namespace
}  // namespace holdfast::bench
