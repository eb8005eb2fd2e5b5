// A JobQueue, as anybody who may write its status wrote it: what is read is bounded and survives
// being written, and the next status of the queue is what the API server takes. Lines: what is
// observed (bytes), the queue.
#include "operator/queues/queue_codec.h"

#include <algorithm>

#include "reconciler/queue/admission.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_document.h"

using namespace holdfast;
using queues::CachedQueue;
using reconciler::QueueStatus;
using std::chrono::seconds;

namespace {

bool is_limit(const std::optional<std::int64_t>& limit) {
  return !limit || (*limit >= 1 && *limit <= reconciler::kCountLimit);
}

void check_spec(const reconciler::QueueSpec& spec) {
  FUZZ_REQUIRE(is_limit(spec.concurrency) && is_limit(spec.concurrency_per_key));
  if (!spec.rate) return;
  FUZZ_REQUIRE(is_limit(spec.rate->jobs));
  FUZZ_REQUIRE(spec.rate->period >= seconds(1) && spec.rate->period <= seconds(86'400));
}

void check_status(const CachedQueue& queue, const QueueStatus& status) {
  const codecs::SharedTexts texts = queue.texts.value_or(codecs::SharedTexts{});
  const Result<Json> body =
      parse_json(queues::queue_status_body(queue, queue.version, texts, status));
  FUZZ_REQUIRE(body.ok());
  const Json& written = at(*body, "metadata");
  FUZZ_REQUIRE(string_at(written, "uid") == queue.uid);
  FUZZ_REQUIRE(string_at(written, "resourceVersion") == std::to_string(queue.version));
  const kube::ObjectPtr object = queues::decode_queue(document(*body));
  FUZZ_REQUIRE(object);
  const auto& again = static_cast<const CachedQueue&>(*object);
  FUZZ_REQUIRE(again.name == queue.name && again.namespace_ == queue.namespace_);
  const QueueStatus& read = again.status;
  const Json encoded = queues::encode_queue_status(status);
  FUZZ_REQUIRE(queues::encode_queue_status(read) == encoded);
  for (const Json& condition : at(encoded, "conditions")) {
    for (const char* const key : {"type", "status", "reason", "message", "lastTransitionTime"}) {
      FUZZ_REQUIRE(condition.contains(key));
    }
  }
  FUZZ_REQUIRE(read.holder == status.holder && read.admitting == status.admitting);
  FUZZ_REQUIRE(read.running == status.running && read.waiting == status.waiting);
  FUZZ_REQUIRE(read.head == status.head && read.conditions == status.conditions);
}

// As the schema has it: nothing else gets into etcd, and nothing else may be written.
bool in_schema(const QueueStatus& status) {
  const auto is_whole = [](const auto& one) { return one.attempt >= 0; };
  return status.running >= 0 && status.waiting >= 0 && status.holder.size() <= 253 &&
         status.head.size() <= reconciler::kHeadLimit &&
         status.admitting.size() <= reconciler::kAdmissionLimit &&
         std::all_of(status.admitting.begin(), status.admitting.end(), is_whole) &&
         status.conditions.size() <= reconciler::kConditionLimit;
}

// The jobs of the queue's admissions, of which some have moved, and some that wait.
reconciler::Line line_of(const CachedQueue& queue, fuzz::Input& input, Time now) {
  reconciler::Line line;
  const auto put = [&](const std::string& uid, std::int64_t attempt) {
    const std::uint8_t bits = input.byte();
    reconciler::QueuedJob job;
    job.uid = job.name = uid;
    job.key = bits & 1 ? "a" : "";
    job.priority = bits & 2 ? 1 : 0;
    job.created = now - seconds(input.byte());
    job.attempt = attempt + (bits & 4 ? 1 : 0);
    job.holds = bits & 8;
    job.waits = !job.holds && bits & 16;
    job.since = now - seconds(bits);
    line.put(job);
  };
  for (const reconciler::Admission& one : queue.status.admitting) {
    if (one.attempt < reconciler::kCountLimit) put(one.uid, one.attempt);
  }
  for (int i = input.byte() % 8; i > 0; --i) put("job-" + std::to_string(i), i);
  line.set_admissions(queue.status.admitting);
  return line;
}

// The job was admitted: the permits of its key.
void check_key(const reconciler::QueueSpec& spec, const reconciler::Line& line,
               const std::string& uid, const QueueStatus& next) {
  const std::string& key = line.find(uid)->key;
  std::int64_t used = 0;
  line.for_each([&](const reconciler::QueuedJob& job) {
    const bool is_admitted = std::any_of(next.admitting.begin(), next.admitting.end(),
                                         [&](const auto& one) { return one.uid == job.uid; });
    if (job.key == key && (job.holds || is_admitted)) ++used;
  });
  FUZZ_REQUIRE(!spec.concurrency_per_key || used <= *spec.concurrency_per_key);
}

void check_decision(const CachedQueue& queue, fuzz::Input input) {
  reconciler::QueueView view;
  const std::uint8_t bits = input.byte();
  view.spec = queue.spec;
  view.status = queue.status;
  view.generation = queue.generation;
  view.self = "operator-1/7";
  view.claimed = bits & 1;
  view.may_count = bits & 2;
  view.since_write = seconds(bits >> 4);
  if (bits & 4) view.carried.push_back({"job-1", 1});
  view.now = *parse_time("2026-06-01T12:00:00.25Z");
  reconciler::Line line = line_of(queue, input, view.now);
  const std::int64_t used = line.used();
  const reconciler::QueueDecision decision = reconciler::decide_queue(view, line);
  if (!decision.write) {
    FUZZ_REQUIRE(decision.admitted.empty());
    return;
  }
  FUZZ_REQUIRE(in_schema(*decision.write));
  check_status(queue, *decision.write);
  if (decision.claims) {
    FUZZ_REQUIRE(decision.admitted.empty() && decision.write->holder == view.self);
    return;
  }
  // S19: nothing is admitted above a limit, whoever wrote the status.
  FUZZ_REQUIRE(view.claimed && view.may_count);
  if (decision.admitted.empty()) return;
  const auto now_used = used + static_cast<std::int64_t>(decision.admitted.size());
  FUZZ_REQUIRE(!view.spec.hold && line.used() == now_used);
  FUZZ_REQUIRE(!view.spec.concurrency || now_used <= *view.spec.concurrency);
  for (const std::string& uid : decision.admitted) check_key(view.spec, line, uid, *decision.write);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string seen = input.line();
  const Result<JsonDocument> json = JsonDocument::parse(input.rest());
  if (!json.ok()) return 0;
  kube::ObjectPtr object;
  try {
    object = queues::decode_queue(*json);
  } catch (const std::exception&) {  // as decode_list() and decode_watch_line() do
    return 0;
  }
  if (!object) return 0;
  const auto& queue = static_cast<const CachedQueue&>(*object);
  check_spec(queue.spec);
  FUZZ_REQUIRE(!queue.status.tokens || queue.status.tokens->count >= 0);
  check_status(queue, queue.status);
  if (!in_schema(queue.status)) return 0;
  check_decision(queue,
                 fuzz::Input(reinterpret_cast<const std::uint8_t*>(seen.data()), seen.size()));
  return 0;
}
