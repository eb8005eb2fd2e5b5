// A list of pods into the cache, as at a start; then the same list again, as at a relist.
#include <benchmark/benchmark.h>

#include "client/cache/store_update.h"
#include "client/kube/list_reader.h"
#include "operator/jobs/pod_index.h"
#include "tests/bench/micro/samples.h"

namespace holdfast::bench {
namespace {

constexpr std::int64_t kPage = 500;  // the reflector's

cache::Store pod_store() {
  cache::Store store;
  store.add_index(jobs::kByJob, [](const kube::Object& object) {
    return std::vector<std::string>{jobs::job_key(static_cast<const codecs::CachedPod&>(object))};
  });
  return store;
}

std::vector<kube::ObjectPtr> decoded(std::int64_t count) {
  return kube::decode_list(pods(), pod_list(count)).value().items;
}

void list_page_decoded(benchmark::State& state) {
  const kube::Kind kind = pods();
  const std::string text = pod_list(kPage);
  for (auto _ : state) {
    const Result<kube::ListPage> page = kube::decode_list(kind, text);
    if (!page.ok() || page->items.size() != kPage) state.SkipWithError("the list is not whole");
  }
  state.SetItemsProcessed(kPage * state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size() * state.iterations()));
}
BENCHMARK(list_page_decoded)->Unit(benchmark::kMillisecond);

void list_into_an_empty_cache(benchmark::State& state) {
  const std::vector<kube::ObjectPtr> items = decoded(state.range(0));
  for (auto _ : state) {
    cache::Store store = pod_store();
    std::vector<cache::Change> changes;
    cache::replace(store, {"", items, cache::Trust::kMayBeOld}, changes);
    if (changes.size() != items.size()) state.SkipWithError("changes are missing");
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(list_into_an_empty_cache)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

void list_into_the_same_cache(benchmark::State& state) {
  const std::vector<kube::ObjectPtr> items = decoded(state.range(0));
  cache::Store store = pod_store();
  std::vector<cache::Change> changes;
  cache::replace(store, {"", items, cache::Trust::kMayBeOld}, changes);
  for (auto _ : state) {
    changes.clear();
    cache::replace(store, {"", items, cache::Trust::kMayBeOld}, changes);
    if (!changes.empty()) state.SkipWithError("nothing had changed");
  }
  state.SetItemsProcessed(state.range(0) * state.iterations());
}
BENCHMARK(list_into_the_same_cache)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast::bench
