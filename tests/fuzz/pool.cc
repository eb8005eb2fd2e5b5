// A WorkerPool, as anybody who may write its status wrote it: what is read is bounded and survives
// being written, and the plan for any workers keeps the limits. Lines: the workers (bytes), the
// pool.
#include "operator/pools/pool_codec.h"

#include <algorithm>
#include <set>
#include <string>

#include "reconciler/pool/size.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_document.h"

using namespace holdfast;
using pools::CachedPool;
using reconciler::PoolPlan;
using reconciler::PoolSpec;
using reconciler::PoolState;
using reconciler::PoolStatus;
using reconciler::PoolWorker;
using reconciler::WorkerState;
using std::chrono::seconds;

namespace {

void check_spec(const PoolSpec& spec) {
  FUZZ_REQUIRE(spec.min_workers >= 0 && spec.min_workers <= spec.max_workers);
  FUZZ_REQUIRE(spec.max_workers >= 1 && spec.max_workers <= reconciler::kMaxWorkers);
  FUZZ_REQUIRE(spec.slots >= 1 && spec.slots <= reconciler::kMaxSlots);
  FUZZ_REQUIRE(spec.idle >= seconds(0) && spec.idle <= seconds(reconciler::kMaxIdleSeconds));
  FUZZ_REQUIRE(spec.lease_duration >= seconds(reconciler::kMinLeaseSeconds) &&
               spec.lease_duration <= seconds(reconciler::kMaxLeaseSeconds));
}

void check_status(const CachedPool& pool, const PoolStatus& status) {
  const codecs::SharedTexts texts = pool.texts.value_or(codecs::SharedTexts{});
  const Result<Json> body = parse_json(pools::pool_status_body(pool, pool.version, texts, status));
  FUZZ_REQUIRE(body.ok());
  const Json& written = at(*body, "metadata");
  FUZZ_REQUIRE(string_at(written, "uid") == pool.uid);
  FUZZ_REQUIRE(string_at(written, "resourceVersion") == std::to_string(pool.version));
  const kube::ObjectPtr object = pools::decode_pool(document(*body));
  FUZZ_REQUIRE(object);
  const PoolStatus& read = static_cast<const CachedPool&>(*object).status;
  FUZZ_REQUIRE(pools::encode_pool_status(read) == pools::encode_pool_status(status));
  FUZZ_REQUIRE(read.starts.failed == status.starts.failed);
}

PoolWorker worker_of(fuzz::Input& input, int number, Time now) {
  const std::uint8_t bits = input.byte();
  PoolWorker worker;
  worker.pod.name = worker.pod.uid = std::to_string(number);
  worker.pod.created = now - seconds(input.byte()) * 5;
  if (worker.pod.created < now) worker.bound = worker.pod.created;
  worker.pod.hash = bits & 1 ? "new" : "old";
  worker.state = static_cast<WorkerState>(bits >> 1 & 3);
  worker.served = bits & 8;
  worker.pod.deleting = bits & 16;
  worker.pod.ended = bits & 32;
  worker.pod.failed = worker.pod.ended && (bits & 64);
  worker.pod.cannot_start = bits & 128;
  const std::uint8_t load = input.byte();
  worker.pod.slots = 1 + load % 16;
  worker.attempts = load / 16;
  worker.idle_for = seconds(input.byte() * 3);
  return worker;
}

bool has(const std::vector<std::string>& uids, const PoolWorker& worker) {
  return std::find(uids.begin(), uids.end(), worker.pod.uid) != uids.end();
}

// The API server keeps one condition of each type.
bool is_in_schema(const PoolStatus& status) {
  std::set<std::string> types;
  return std::all_of(status.conditions.begin(), status.conditions.end(),
                     [&](const auto& one) { return types.insert(one.type).second; });
}

void check_plan(const CachedPool& pool, fuzz::Input input) {
  if (!is_in_schema(pool.status)) return;
  PoolState state;
  state.name = pool.name;
  state.generation = pool.generation;
  state.deleting = pool.deleting;
  state.spec = pool.spec;
  state.hash = "new";
  state.status = pool.status;
  state.now = *parse_time("2026-06-01T12:00:00.25Z");
  state.waiting = input.byte();
  state.waiting_alone = state.waiting / 4;
  // The caller drops a refusal when the spec changes.
  const bool is_new_spec = pool.generation != pool.status.observed_generation;
  if ((input.byte() & 1) && !is_new_spec) state.refusal = PoolState::Refusal{"no quota", state.now};
  for (int i = input.byte() % 24; i > 0; --i) {
    state.workers.push_back(worker_of(input, i, state.now));
  }
  const PoolPlan plan = plan_pool(state);
  FUZZ_REQUIRE(plan.create >= 0 && plan.create <= reconciler::kPlanLimit);
  FUZZ_REQUIRE(!plan.wake_after || *plan.wake_after >= Duration::zero());
  std::int64_t serve = plan.create;
  for (const PoolWorker& worker : state.workers) {
    const bool serves =
        !worker.pod.ended && !worker.pod.deleting &&
        (worker.state == WorkerState::kStarting || worker.state == WorkerState::kLive);
    if (serves && !has(plan.drain, worker) && !has(plan.remove, worker)) ++serve;
    FUZZ_REQUIRE(!(has(plan.remove, worker) && worker.pod.deleting));
    FUZZ_REQUIRE(!(has(plan.remove, worker) && worker.state == WorkerState::kLive));
  }
  FUZZ_REQUIRE(plan.create == 0 || serve <= state.spec.max_workers || state.workers.size() > 16);
  const PoolStatus& next = plan.status;
  FUZZ_REQUIRE(!next.starts.next ||
               *next.starts.next <= state.now + reconciler::kLongestStartDelay);
  FUZZ_REQUIRE(next.workers.total == next.workers.starting + next.workers.busy + next.workers.idle +
                                         next.workers.draining);
  check_status(pool, next);
  // The same once more: only time brings something new.
  state.status = next;
  FUZZ_REQUIRE(plan_pool(state).status == next);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string seen = input.line();
  const Result<JsonDocument> json = JsonDocument::parse(input.rest());
  if (!json.ok()) return 0;
  kube::ObjectPtr object;
  try {
    object = pools::decode_pool(*json);
  } catch (const std::exception&) {  // as decode_list() and decode_watch_line() do
    return 0;
  }
  if (!object) return 0;
  const auto& pool = static_cast<const CachedPool&>(*object);
  check_spec(pool.spec);
  check_status(pool, pool.status);
  check_plan(pool, fuzz::Input(reinterpret_cast<const std::uint8_t*>(seen.data()), seen.size()));
  return 0;
}
