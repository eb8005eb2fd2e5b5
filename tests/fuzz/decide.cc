// The decision on any job that the API server's schema lets through, with any pods: it ends,
// without undefined behaviour, and keeps the rules. Lines: what is observed (bytes), the job; then
// the pods.
#include <algorithm>
#include <set>
#include <string>

#include "reconciler/job/decide.h"
#include "reconciler/run/slot.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kinds.h"
#include "tests/unit/reconciler/rules.h"

using namespace holdfast;
using reconciler::seconds;

namespace {

constexpr std::int64_t kInt32 = 2'147'483'647;

bool between(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value >= low && value <= high;
}
bool between(const std::optional<seconds>& value, std::int64_t low, std::int64_t high) {
  return !value || between(value->count(), low, high);
}

// The ranges of api/crd/durablejob.yaml: nothing else gets into etcd.
bool in_schema(const reconciler::Spec& spec) {
  const reconciler::RetryBackoff& backoff = spec.retry_backoff;
  return between(spec.backoff_limit, 0, kInt32) && between(spec.disruption_limit, 0, kInt32) &&
         between(spec.start_deadline, 1, 31'536'000) && between(spec.lost_after, 15, 86'400) &&
         between(spec.attempt_deadline, 1, kInt32) && between(spec.active_deadline, 1, kInt32) &&
         between(spec.ttl_after_finished, 0, kInt32) && between(backoff.initial, 1, 86'400) &&
         between(backoff.max, backoff.initial.count(), 86'400) && backoff.factor >= 1 &&
         backoff.factor <= 10 && between(backoff.jitter_percent, 0, 100);
}

bool in_schema(const reconciler::Job& job) {
  if (!in_schema(job.spec)) return false;
  const reconciler::Status& status = job.status;
  const reconciler::Status none;
  if (!reconciler::testing::refused_by_api(status, status).empty() && !(status == none))
    return false;
  // A pool is neither added nor removed.
  const bool have_one_place =
      std::none_of(status.runs.begin(), status.runs.end(), [&](const reconciler::Run& run) {
        return run.at_worker() && (!run.pod_uid.empty() || !job.spec.pool);
      });
  return have_one_place && between(status.attempt, 0, kInt32) &&
         between(status.failures, 0, kInt32 + 1) && between(status.disruptions, 0, kInt32 + 1) &&
         between(status.suspended, 0, kInt32);
}

// What the replica knows of the job's pool, and of the place of each attempt on a worker.
void observe_places(fuzz::Input& input, reconciler::JobView& view) {
  reconciler::PoolView& pool = view.observed.pool;
  const std::uint8_t bits = input.byte();
  pool.no_pool = (bits & 7) == 7;
  for (int i = 0; i < (bits & 3); ++i) {
    const std::string number = std::to_string(i & bits >> 3);
    pool.offers.push_back({"worker-" + number, "lease-" + number, seconds(30)});
  }
  pool.wait.waited = pool.wait.since_turn = seconds(input.byte());
  view.runs.resize(view.job.status.runs.size());
  for (std::size_t place = 0; place < view.runs.size(); ++place) {
    const reconciler::Run& run = view.job.status.runs[place];
    if (!run.at_worker()) continue;
    reconciler::SlotView slot;
    const std::uint8_t seen = input.byte();
    slot.at = static_cast<reconciler::AtPlace>(seen % 6);
    slot.is_known = seen < 128;
    slot.left = seen & 128;
    slot.exit_code = (seen & 64) ? input.byte() : 0;
    slot.stalled_for = seconds(input.byte());
    if (seen & 32) slot.progress = slot.checkpoint = slot.result = "page " + std::to_string(seen);
    view.runs[place].slot = slot;
    view.runs[place].observed.confirmed = true;
    if (!run.open() && slot.left) continue;
    view.pods.push_back(reconciler::slot_as_pod(view.job, run, slot));
  }
}

void observe(fuzz::Input input, reconciler::JobView& view) {
  reconciler::Observed& result = view.observed;
  reconciler::RunObserved& run = view.begun().observed;
  const std::uint8_t bits = input.byte();
  run.own_intent = bits & 1;
  run.pod_existed = bits & 2;
  run.took_over = bits & 4;
  run.confirmed = result.confirmed = bits & 8;
  run.no_pod_for = seconds(input.byte());
  result.live_for = seconds(input.byte() * 60);
  run.still_for = seconds(input.byte() * 10);
  result.cancelling_for = seconds(input.byte());
  result.since_write = std::chrono::milliseconds(input.byte() * 100);
  if (bits & 16) {
    run.refusal.emplace();
    run.refusal->kind = static_cast<reconciler::CreationRefusal::Kind>(input.byte() % 3);
    run.refusal->message = "no";
    run.refusal->retry_in = seconds(input.byte() % 31);
  }
  if (bits & 32) {
    reconciler::NodeObservation& node = result.nodes["node-1"];
    if (bits & 64) node.missing_for = seconds(input.byte());
    if (bits & 128) node.silent_for = seconds(input.byte());
    node.breaker = input.byte() & 1;
  }
  result.nonce = input.number();
  // Some jobs have a queue by their JSON.
  const std::uint8_t queue = input.byte();
  if (queue & 1) view.job.queue = reconciler::QueueRef{"encode", 0, ""};
  result.permit.admitted = queue & 2;
  result.permit.no_queue = queue & 4;
  result.permit.waited = std::chrono::milliseconds(input.byte() * 10);
  result.may_create = !(queue & 8);
  observe_places(input, view);
}

template <class Ptr>
Ptr decode(Ptr (*decoder)(const JsonView&), const Result<JsonDocument>& json) {
  if (!json.ok()) return nullptr;
  try {
    return decoder(*json);
  } catch (const std::exception&) {  // as decode_list() and decode_watch_line() do
    return nullptr;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string seen = input.line();
  const codecs::JobPtr object = decode(codecs::decode_job, JsonDocument::parse(input.line()));
  if (!object) return 0;
  reconciler::JobView view;
  view.job = object->job;
  if (!in_schema(view.job)) return 0;
  std::set<std::string> uids;  // the API server gives each to one pod
  while (!input.empty()) {
    const codecs::PodPtr pod = decode(codecs::decode_pod, JsonDocument::parse(input.line()));
    if (!pod || !uids.insert(pod->uid).second) continue;
    view.pods.push_back(pod->pod);
  }
  observe(fuzz::Input(reinterpret_cast<const std::uint8_t*>(seen.data()), seen.size()), view);
  const Time now = *parse_time("2026-06-01T12:00:00.25Z");
  const reconciler::Decision decision = reconciler::decide(view, now);
  const std::string broken = reconciler::testing::broken_by(view, decision, now);
  if (!broken.empty()) std::fprintf(stderr, "broken: %s\n", broken.c_str());
  FUZZ_REQUIRE(broken.empty());
  return 0;
}
