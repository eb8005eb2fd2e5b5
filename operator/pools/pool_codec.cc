#include "operator/pools/pool_codec.h"

#include <algorithm>

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "operator/codecs/job_codec.h"
#include "operator/pools/worker_pod.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

using reconciler::kCountLimit;
using std::chrono::seconds;

// Reads the numbers of a spec, and keeps the first thing that is wrong.
class SpecReader {
 public:
  explicit SpecReader(const JsonView& spec) : spec_(spec) {}

  std::int64_t number(const char* key, std::int64_t fallback, std::int64_t least,
                      std::int64_t most) {
    const JsonView value = at(spec_, key);
    if (value.is_null()) return fallback;
    const std::int64_t given = value.int_or(fallback);
    if (!value.is_number_integer() || given < least || given > most) {
      wrong(std::string("spec.") + key + " must be a whole number from " + std::to_string(least) +
            " to " + std::to_string(most));
    }
    return std::clamp(given, least, most);
  }
  void wrong(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }
  const std::string& error() const { return error_; }

 private:
  JsonView spec_;
  std::string error_;
};

reconciler::PoolSpec decode_pool_spec(const JsonView& json, std::string& invalid) {
  SpecReader reader(json);
  reconciler::PoolSpec spec;
  spec.min_workers = reader.number("minWorkers", 1, 0, reconciler::kMaxWorkers);
  spec.max_workers = reader.number("maxWorkers", 10, 1, reconciler::kMaxWorkers);
  spec.slots = reader.number("slotsPerWorker", 1, 1, reconciler::kMaxSlots);
  spec.idle = seconds(reader.number("idleSeconds", 300, 0, reconciler::kMaxIdleSeconds));
  spec.lease_duration = seconds(reader.number(
      "leaseDurationSeconds", 30, reconciler::kMinLeaseSeconds, reconciler::kMaxLeaseSeconds));
  spec.start_deadline =
      seconds(reader.number("startDeadlineSeconds", 600, 1, reconciler::kMaxStartSeconds));
  spec.stop_grace = seconds(reader.number("stopGraceSeconds", 30, 1, reconciler::kMaxStopSeconds));
  if (spec.min_workers > spec.max_workers) {
    reader.wrong("spec.minWorkers is more than spec.maxWorkers");
    spec.min_workers = spec.max_workers;
  }
  if (!at(json, "template").is_object()) reader.wrong("spec.template is missing");
  invalid = reader.error();
  return spec;
}

std::int64_t count_at(const JsonView& json, const char* key) {
  return std::clamp<std::int64_t>(int_at(json, key), 0, kCountLimit);
}

reconciler::PoolStatus decode_pool_status(const JsonView& json) {
  reconciler::PoolStatus status;
  status.observed_generation = int_at(json, "observedGeneration");
  status.workers.total = count_at(json, "workers");
  status.workers.busy = count_at(json, "busy");
  status.workers.idle = count_at(json, "idle");
  status.workers.starting = count_at(json, "starting");
  status.workers.draining = count_at(json, "draining");
  status.slots = count_at(json, "slots");
  status.busy_slots = count_at(json, "busySlots");
  status.waiting = count_at(json, "waiting");
  status.oldest_since = time_at(json, "oldestWaitingSince");
  status.selector = string_at(json, "selector");
  status.holder = string_at(json, "holderIdentity");
  status.starts.failed = count_at(json, "failedStarts");
  status.starts.next = time_at(json, "nextStart");
  status.message = string_at(json, "message");
  for (const JsonView condition : at(json, "conditions")) {
    if (status.conditions.size() == reconciler::kConditionLimit) break;
    status.conditions.push_back(api::read<reconciler::Condition>(condition));
  }
  return status;
}

}  // namespace

kube::Kind pool_kind() {
  kube::Kind kind;
  kind.name = "pools";
  kind.group_path = reconciler::kJobGroupPath;
  kind.plural = reconciler::kPoolPlural;
  kind.decode = decode_pool;
  return kind;
}

PoolPtr decode_pool(const JsonView& json) {
  auto pool = std::make_shared<CachedPool>();
  if (!kube::decode_meta(json, *pool)) return nullptr;
  const JsonView meta = at(json, "metadata");
  pool->generation = int_at(meta, "generation");
  pool->deleting = !at(meta, "deletionTimestamp").is_null();
  pool->spec = decode_pool_spec(at(json, "spec"), pool->invalid);
  pool->spec.unknown = unknown_in_spec(KnownKind::kWorkerPool, at(json, "spec"));
  pool->status = decode_pool_status(at(json, "status"));
  std::string pod_template = template_of(json);
  pool->hash = worker_hash(pod_template, pool->spec);
  SharedTexts texts = decode_pool_texts(json);
  if (pod_template.size() + texts.size() <= kMaxCachedTexts) {
    pool->pod_template = std::move(pod_template);
    pool->texts = std::move(texts);
  }
  return pool;
}

SharedTexts decode_pool_texts(const JsonView& json) {
  return {shared_metadata(at(json, "metadata")),
          unknown_in_status(KnownKind::kWorkerPool, at(json, "status"))};
}

std::string template_of(const JsonView& pool) { return at(at(pool, "spec"), "template").text(); }

Json encode_pool_status(const reconciler::PoolStatus& status) {
  Json json = {{"observedGeneration", status.observed_generation},
               {"workers", status.workers.total},
               {"busy", status.workers.busy},
               {"idle", status.workers.idle},
               {"starting", status.workers.starting},
               {"draining", status.workers.draining},
               {"slots", status.slots},
               {"busySlots", status.busy_slots},
               {"waiting", status.waiting},
               {"selector", status.selector},
               {"holderIdentity", status.holder},
               {"failedStarts", status.starts.failed}};
  put_time(json, "oldestWaitingSince", status.oldest_since);
  put_time(json, "nextStart", status.starts.next);
  if (!status.message.empty()) json["message"] = status.message;
  for (const auto& condition : status.conditions) {
    json["conditions"].push_back(api::write(condition));
  }
  return json;
}

std::string pool_status_body(const kube::Object& pool, std::uint64_t version,
                             const SharedTexts& texts, const reconciler::PoolStatus& status) {
  const Result<Json> shared = parse_json(texts.metadata);
  Json metadata = shared.ok() && shared->is_object() ? *shared : Json::object();
  metadata["name"] = pool.name;
  metadata["namespace"] = pool.namespace_;
  metadata["uid"] = pool.uid;
  metadata["resourceVersion"] = std::to_string(version);
  Json encoded = encode_pool_status(status);
  put_back_unknown(texts.unknown, encoded);
  const Json body = {{"apiVersion", reconciler::kJobApiVersion},
                     {"kind", reconciler::kPoolKind},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(encoded)}};
  // The message has words of a pod.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::controller
