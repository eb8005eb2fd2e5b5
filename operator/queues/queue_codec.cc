#include "operator/queues/queue_codec.h"

#include <algorithm>

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/known_fields.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

using reconciler::kCountLimit;

// The schema has these limits. A stored object may be older than it.
std::optional<std::int64_t> limit_at(const JsonView& json, const char* key) {
  const JsonView value = at(json, key);
  if (!value.is_number_integer()) return std::nullopt;
  return std::clamp<std::int64_t>(value.int_or(1), 1, kCountLimit);
}

reconciler::QueueSpec decode_queue_spec(const JsonView& json) {
  reconciler::QueueSpec spec;
  spec.concurrency = limit_at(json, "concurrency");
  spec.concurrency_per_key = limit_at(json, "concurrencyPerKey");
  spec.hold = bool_at(json, "hold");
  const JsonView rate = at(json, "rate");
  if (rate.is_object()) {
    spec.rate.emplace();
    spec.rate->jobs = limit_at(rate, "jobs").value_or(1);
    spec.rate->period = std::chrono::seconds(
        std::clamp<std::int64_t>(int_at(rate, "periodSeconds", 60), 1, 86'400));
  }
  return spec;
}

reconciler::QueueStatus decode_queue_status(const JsonView& json) {
  reconciler::QueueStatus status;
  status.holder = string_at(json, "holderIdentity");
  status.running = int_at(json, "running");
  status.waiting = int_at(json, "waiting");
  status.oldest_since = time_at(json, "oldestWaitingSince");
  for (const JsonView name : at(json, "head")) {
    status.head.emplace_back(name.string_or(""));
  }
  for (const JsonView one : at(json, "admitting")) {
    status.admitting.push_back({string_at(one, "uid"), int_at(one, "attempt")});
  }
  const JsonView rate = at(json, "rate");
  if (const auto time = time_at(rate, "time")) {
    status.tokens =
        reconciler::Tokens{std::clamp<std::int64_t>(int_at(rate, "tokens"), 0, kCountLimit), *time};
  }
  status.observed_generation = int_at(json, "observedGeneration");
  for (const JsonView condition : at(json, "conditions")) {
    status.conditions.push_back(api::read<reconciler::Condition>(condition));
  }
  return status;
}

}  // namespace

kube::Kind queue_kind() {
  kube::Kind kind;
  kind.name = "queues";
  kind.group_path = reconciler::kJobGroupPath;
  kind.plural = kQueuePlural;
  kind.decode = decode_queue;
  return kind;
}

QueuePtr decode_queue(const JsonView& json) {
  auto queue = std::make_shared<CachedQueue>();
  if (!kube::decode_meta(json, *queue)) return nullptr;
  queue->generation = int_at(at(json, "metadata"), "generation");
  queue->spec = decode_queue_spec(at(json, "spec"));
  queue->spec.unknown = unknown_in_spec(KnownKind::kJobQueue, at(json, "spec"));
  queue->status = decode_queue_status(at(json, "status"));
  SharedTexts texts = decode_queue_texts(json);
  if (texts.size() <= kMaxCachedTexts) queue->texts = std::move(texts);
  return queue;
}

SharedTexts decode_queue_texts(const JsonView& json) {
  return {shared_metadata(at(json, "metadata")),
          unknown_in_status(KnownKind::kJobQueue, at(json, "status"))};
}

Json encode_queue_status(const reconciler::QueueStatus& status) {
  Json json = {{"holderIdentity", status.holder},
               {"running", status.running},
               {"waiting", status.waiting},
               {"observedGeneration", status.observed_generation}};
  if (status.oldest_since) json["oldestWaitingSince"] = format_time(*status.oldest_since);
  for (const std::string& name : status.head) json["head"].push_back(name);
  for (const reconciler::Admission& one : status.admitting) {
    json["admitting"].push_back({{"uid", one.uid}, {"attempt", one.attempt}});
  }
  if (status.tokens) {
    json["rate"] = {{"tokens", status.tokens->count},
                    {"time", format_time_micros(status.tokens->time)}};
  }
  for (const auto& condition : status.conditions) {
    json["conditions"].push_back(api::write(condition));
  }
  return json;
}

std::string queue_status_body(const kube::Object& queue, std::uint64_t version,
                              const SharedTexts& texts, const reconciler::QueueStatus& status) {
  const Result<Json> shared = parse_json(texts.metadata);
  Json metadata = shared.ok() && shared->is_object() ? *shared : Json::object();
  metadata["name"] = queue.name;
  metadata["namespace"] = queue.namespace_;
  metadata["uid"] = queue.uid;
  metadata["resourceVersion"] = std::to_string(version);
  Json encoded = encode_queue_status(status);
  put_back_unknown(texts.unknown, encoded);
  const Json body = {{"apiVersion", reconciler::kJobApiVersion},
                     {"kind", "JobQueue"},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(encoded)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::controller
