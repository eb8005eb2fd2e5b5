// A DurableJob: its status survives being written, and what is written is what the API server
// takes: its pod's body, and the status update.
#include "client/kube/packed.h"
#include "operator/codecs/at_rest.h"
#include "operator/injection/pod_body.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kinds.h"
#include "tests/support/json_document.h"

using namespace holdfast;
using codecs::CachedJob;
using codecs::CachedPod;
using codecs::JobTexts;

namespace {

void check_status(const CachedJob& cached, const JobTexts& texts) {
  const reconciler::Status& status = cached.job.status;
  const Json written = codecs::encode_status(cached.job.spec, status);
  const reconciler::Status read = codecs::decode_status(cached.job.spec, document(written));
  FUZZ_REQUIRE(codecs::encode_status(cached.job.spec, read) == written);
  FUZZ_REQUIRE(read.phase == status.phase);
  FUZZ_REQUIRE(read.attempt == status.attempt);
  FUZZ_REQUIRE(read.runs == status.runs);
  FUZZ_REQUIRE(read.completed.size() == status.completed.size());
  FUZZ_REQUIRE(read.failed == status.failed);
  FUZZ_REQUIRE(read.history.size() == status.history.size());
  FUZZ_REQUIRE(read.conditions.size() == status.conditions.size());
  const Result<Json> body = parse_json(codecs::status_update_body(cached.job, texts, status));
  FUZZ_REQUIRE(body.ok());
  const Json& metadata = at(*body, "metadata");
  FUZZ_REQUIRE(string_at(metadata, "uid") == cached.uid);
  FUZZ_REQUIRE(string_at(metadata, "resourceVersion") == std::to_string(cached.version));
}

void check_environment(const Json& spec, const char* list) {
  const Json& containers = at(spec, list);
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    if (!container.is_object()) continue;
    const Json& environment = at(container, "env");
    FUZZ_REQUIRE(environment.is_array() && environment.size() >= 3);
    FUZZ_REQUIRE(string_at(environment[2], "name") == "HOLDFAST_ATTEMPT");
    FUZZ_REQUIRE(string_at(environment[2], "value") == "7");
    for (std::size_t i = 3; i < environment.size(); ++i) {
      FUZZ_REQUIRE(string_at(environment[i], "name") != "HOLDFAST_ATTEMPT");
    }
  }
}

void check_pod(const CachedJob& cached, const JobTexts& texts) {
  const reconciler::Job& job = cached.job;
  const std::string name = reconciler::pod_name(job.name, job.uid, 7);
  FUZZ_REQUIRE(reconciler::attempt_in_name(job.name, job.uid, name) == 7);
  const Result<std::string> body =
      injection::pod_body(job, texts.pod_template, {7, name}, "agent", "7-of-32");
  // With a heartbeat a template may also use the agent's names, or have no command.
  const Result<Json> pod_template = parse_json(texts.pod_template);
  const bool has_spec = pod_template.ok() && at(*pod_template, "spec").is_object();
  FUZZ_REQUIRE(job.spec.heartbeat ? has_spec || !body.ok() : body.ok() == has_spec);
  if (!body.ok()) return;
  Result<Json> pod = parse_json(*body);
  FUZZ_REQUIRE(pod.ok());
  FUZZ_REQUIRE(string_at(at(*pod, "spec"), "restartPolicy") == "Never");
  check_environment(at(*pod, "spec"), "initContainers");
  check_environment(at(*pod, "spec"), "containers");
  // As the API server would have it.
  (*pod)["metadata"]["uid"] = "a pod's";
  (*pod)["metadata"]["resourceVersion"] = "8";
  const kube::ObjectPtr object = codecs::decode_pod(document(*pod));
  FUZZ_REQUIRE(object);
  const auto& made = static_cast<const CachedPod&>(*object);
  FUZZ_REQUIRE(made.name == name && made.namespace_ == job.namespace_);
  FUZZ_REQUIRE(made.pod.attempt == 7);
  FUZZ_REQUIRE(made.job_uid() == job.uid && made.pod.job_uid_label == job.uid);
  FUZZ_REQUIRE(made.pod.has_finalizer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<JsonDocument> json = JsonDocument::parse(fuzz::Input(data, size).rest());
  if (!json.ok()) return 0;
  kube::ObjectPtr object;
  try {
    object = codecs::decode_job(*json);
  } catch (const std::exception&) {  // as decode_list() and decode_watch_line() do
    return 0;
  }
  if (!object) return 0;
  const auto& cached = static_cast<const CachedJob&>(*object);
  const JobTexts texts = codecs::decode_texts(*json);
  check_status(cached, texts);
  const kube::ObjectPtr packed = kube::whole(codecs::decode_cached_job(*json));
  const reconciler::Job& rest = static_cast<const CachedJob&>(*packed).job;
  FUZZ_REQUIRE(rest.status.phase == cached.job.status.phase);
  FUZZ_REQUIRE(reconciler::shard_key(rest) == reconciler::shard_key(cached.job));
  FUZZ_REQUIRE(rest.status.outbox == cached.job.status.outbox);
  FUZZ_REQUIRE(rest.status.completed == cached.job.status.completed);
  if (cached.texts) check_pod(cached, texts);
  return 0;
}
