#include "operator/pools/pool_codec.h"

#include <algorithm>

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "operator/codecs/job_codec.h"
#include "operator/pools/worker_pod.h"
#include "reconciler/names.h"

namespace holdfast::pools {
namespace {

using std::chrono::seconds;

// Reads a spec, and keeps the first thing that is wrong.
class SpecReader {
 public:
  explicit SpecReader(const JsonView& spec) : spec_(spec) {}

  void operator()(const char* name, std::int64_t& number, const api::Rule& rule) {
    const JsonView value = at(spec_, name);
    if (value.is_null()) return;
    const std::int64_t given = value.int_or(number);
    if (!value.is_number_integer() || given < rule.least || given > rule.most) {
      wrong(std::string("spec.") + name + " must be a whole number from " +
            std::to_string(rule.least) + " to " + std::to_string(rule.most));
    }
    number = std::clamp(given, rule.least, rule.most);
  }
  void operator()(const char* name, seconds& time, const api::Rule& rule) {
    std::int64_t count = time.count();
    (*this)(name, count, rule);
    time = seconds(count);
  }
  void other(const char*) {}
  void own(const std::string&) {}

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
  fields(reader, spec);
  if (spec.min_workers > spec.max_workers) {
    reader.wrong("spec.minWorkers is more than spec.maxWorkers");
    spec.min_workers = spec.max_workers;
  }
  if (!at(json, "template").is_object()) reader.wrong("spec.template is missing");
  invalid = reader.error();
  return spec;
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
  pool->spec.unknown = codecs::unknown_in_spec(codecs::KnownKind::kWorkerPool, at(json, "spec"));
  pool->status = api::read<reconciler::PoolStatus>(at(json, "status"));
  std::string pod_template = template_of(json);
  pool->hash = worker_hash(pod_template, pool->spec);
  codecs::SharedTexts texts = decode_pool_texts(json);
  if (pod_template.size() + texts.size() <= codecs::kMaxCachedTexts) {
    pool->pod_template = std::move(pod_template);
    pool->texts = std::move(texts);
  }
  return pool;
}

codecs::SharedTexts decode_pool_texts(const JsonView& json) {
  return {codecs::shared_metadata(at(json, "metadata")),
          codecs::unknown_in_status(codecs::KnownKind::kWorkerPool, at(json, "status"))};
}

std::string template_of(const JsonView& pool) { return at(at(pool, "spec"), "template").text(); }

Json encode_pool_status(const reconciler::PoolStatus& status) { return api::write(status); }

std::string pool_status_body(const kube::Object& pool, std::uint64_t version,
                             const codecs::SharedTexts& texts,
                             const reconciler::PoolStatus& status) {
  const Result<Json> shared = parse_json(texts.metadata);
  Json metadata = shared.ok() && shared->is_object() ? *shared : Json::object();
  metadata["name"] = pool.name;
  metadata["namespace"] = pool.namespace_;
  metadata["uid"] = pool.uid;
  metadata["resourceVersion"] = std::to_string(version);
  Json encoded = encode_pool_status(status);
  codecs::put_back_unknown(texts.unknown, encoded);
  const Json body = {{"apiVersion", reconciler::kJobApiVersion},
                     {"kind", reconciler::kPoolKind},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(encoded)}};
  // The message has words of a pod.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::pools
