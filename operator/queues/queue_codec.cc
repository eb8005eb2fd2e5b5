#include "operator/queues/queue_codec.h"

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "operator/codecs/job_codec.h"
#include "operator/codecs/known_fields.h"
#include "reconciler/names.h"

namespace holdfast::queues {
namespace {

reconciler::QueueStatus decode_queue_status(const JsonView& json) {
  auto status = api::read<reconciler::QueueStatus>(json);
  const JsonView rate = at(json, "rate");
  if (const auto time = time_at(rate, "time")) {
    status.tokens = api::read<reconciler::Tokens>(rate);
    status.tokens->time = *time;
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
  queue->spec = api::read<reconciler::QueueSpec>(at(json, "spec"));
  queue->spec.unknown = codecs::unknown_in_spec(codecs::KnownKind::kJobQueue, at(json, "spec"));
  queue->status = decode_queue_status(at(json, "status"));
  codecs::SharedTexts texts = decode_queue_texts(json);
  if (texts.size() <= codecs::kMaxCachedTexts) queue->texts = std::move(texts);
  return queue;
}

codecs::SharedTexts decode_queue_texts(const JsonView& json) {
  return {codecs::shared_metadata(at(json, "metadata")),
          codecs::unknown_in_status(codecs::KnownKind::kJobQueue, at(json, "status"))};
}

Json encode_queue_status(const reconciler::QueueStatus& status) {
  Json json = api::write(status);
  if (!status.tokens) return json;
  json["rate"] = api::write(*status.tokens);
  json["rate"]["time"] = format_time_micros(status.tokens->time);
  return json;
}

std::string queue_status_body(const kube::Object& queue, std::uint64_t version,
                              const codecs::SharedTexts& texts,
                              const reconciler::QueueStatus& status) {
  const Result<Json> shared = parse_json(texts.metadata);
  Json metadata = shared.ok() && shared->is_object() ? *shared : Json::object();
  metadata["name"] = queue.name;
  metadata["namespace"] = queue.namespace_;
  metadata["uid"] = queue.uid;
  metadata["resourceVersion"] = std::to_string(version);
  Json encoded = encode_queue_status(status);
  codecs::put_back_unknown(texts.unknown, encoded);
  const Json body = {{"apiVersion", reconciler::kJobApiVersion},
                     {"kind", "JobQueue"},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(encoded)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::queues
