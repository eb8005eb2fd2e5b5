#include "operator/lane/lane_requests.h"

#include <utility>

#include "client/controller/own_writes.h"
#include "operator/codecs/guard_policies.h"
#include "operator/codecs/job_codec.h"
#include "reconciler/names.h"

namespace holdfast::lane_controller {
namespace {

// Then a name that was taken may be free.
constexpr std::chrono::seconds kTakenLook{30};

// No later try can succeed. What an admission webhook or another policy refuses, it may allow later.
bool is_final(const Error& error) {
  if (error.http_status == 422 && codecs::is_guard_refusal(error.message)) return true;
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count &&
         !error.message.starts_with("admission webhook");
}

// The definition of DurableJobs, a policy or a webhook says no.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kForbidden;
}

std::string batch_path(const std::string& ns, const std::string& name) {
  return kube::object_path(lane::kBatchGroupPath, lane::kBatchPlural, ns, name);
}

std::string durable_path(const std::string& ns, const std::string& name) {
  return kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name);
}

}  // namespace

Task<Result<>> LaneRequests::perform(const lane::BatchJob& job, const lane::Decision& decision,
                                     LaneMemoryPtr memory, controller::Gate::Claim claim) {
  if (decision.look) {
    auto task = look(job, memory);
    co_return co_await task;
  }
  Result<> patched = Unit{};
  if (decision.patch) {
    auto task = patch(job, *decision.patch, memory, claim);
    patched = co_await task;
    // The status is mirrored all the same.
    if (!patched && !is_refusal(patched.error())) co_return patched.error();
  }
  if (decision.status) {
    auto task = write_status(job, *decision.status, memory, claim);
    const Result<> done = co_await task;
    if (!done) co_return done.error();
  }
  if (decision.creation && !decision.status) {
    auto known = is_current(job);
    const Result<> current = co_await known;
    if (!current) co_return current.error();
  }
  if (decision.creation) {
    auto task = create(job, *decision.creation, memory, claim);
    const Result<> done = co_await task;
    if (!done) co_return done.error();
    if (memory->created.empty()) co_return Unit{};
  }
  for (const lane::Event& event : decision.events) record(job, event);
  co_return patched;
}

void LaneRequests::record(const lane::BatchJob& job, const lane::Event& event) {
  deps_.events.record({"batch/v1", "Job", job.namespace_, job.name, job.uid}, event.warning,
                      event.reason, "Run", event.note);
}

Task<Result<lane::BatchJob>> LaneRequests::whole(BatchJobPtr job) {
  if (job->job) co_return *job->job;
  auto get = deps_.client.get(batch_path(job->namespace_, job->name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  std::optional<lane::BatchJob> read = decode_whole_batch_job(*answer);
  if (!read || read->uid != job->uid) {
    co_return make_error(ErrorCode::kConflict, "the Job is another one now");
  }
  co_return std::move(*read);
}

Task<Result<>> LaneRequests::write_status(const lane::BatchJob& job, const lane::StatusWrite& write,
                                          LaneMemoryPtr memory, controller::Gate::Claim claim) {
  auto put = writer_.put(claim, batch_path(job.namespace_, job.name) + "/status",
                         batch_status_body(job, write.metadata, write.status),
                         {.answer_with_metadata = true});
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  memory->last_write = deps_.loop.now();
  controller::raise(memory->job_version, *answer);
  co_return Unit{};
}

Task<Result<>> LaneRequests::send(const lane::BatchJob& job, std::string name,
                                  std::uint64_t& version, lane::Source source, Json fields,
                                  LaneMemory& memory, controller::Gate::Claim claim) {
  kube::CallOptions options;
  options.answer_with_metadata = true;
  options.content_type = "application/json-patch+json";
  auto call = writer_.patch(claim, durable_path(job.namespace_, name),
                            lane::patch_body(version, source, fields), options);
  const Result<JsonDocument> answer = co_await call;
  if (!answer) co_return answer.error();
  controller::raise(memory.durable_version, *answer);
  controller::raise(version, *answer);
  co_return Unit{};
}

Task<Result<>> LaneRequests::patch(const lane::BatchJob& job, const lane::Patch& patch,
                                   LaneMemoryPtr memory, controller::Gate::Claim claim) {
  auto known = is_current(job);
  const Result<> current = co_await known;
  if (!current) co_return current.error();
  std::uint64_t version = patch.version;
  lane::View::Refused refused{patch.wanted, patch.refused};
  const lane::Source source = patch.refused.empty() ? patch.wanted : patch.recorded;
  auto together = send(job, patch.name, version, source, patch.fields, *memory, claim);
  const Result<> done = co_await together;
  memory->refused.reset();
  if (!done && !is_refusal(done.error())) co_return done.error();
  if (!done) {
    for (const Json& field : lane::one_by_one(patch.fields)) {
      auto alone = send(job, patch.name, version, patch.recorded, field, *memory, claim);
      const Result<> sent = co_await alone;
      if (sent) continue;
      // A suspension and a resume always go through.
      if (!is_refusal(sent.error()) || field.contains("suspend")) {
        co_return sent.error();
      }
      refused.fields.emplace(field.begin().key(), sent.error().message);
    }
  }
  if (refused.fields.empty()) co_return Unit{};
  record(job, lane::Event{true, "ChangeRefused",
                          "DurableJob " + patch.name +
                              " keeps its old values: " + lane::text_of(refused.fields)});
  memory->refused = std::move(refused);
  look_again(job);
  co_return Unit{};
}

Task<Result<>> LaneRequests::create(const lane::BatchJob& job, const lane::Creation& creation,
                                    LaneMemoryPtr memory, controller::Gate::Claim claim) {
  memory->tried = true;
  auto post = writer_.post(
      claim,
      kube::collection_path(reconciler::kJobGroupPath, reconciler::kJobPlural, job.namespace_),
      creation.body, {.answer_with_metadata = true});
  const Result<JsonDocument> answer = co_await post;
  memory->created.clear();
  if (answer) {
    memory->created = string_at(at(*answer, "metadata"), "uid");
    controller::raise(memory->durable_version, *answer);
    co_return Unit{};
  }
  const Error& error = answer.error();
  if (is_final(error)) {
    memory->refusal = "the DurableJob cannot be created: " + error.message;
    look_again(job);
    co_return Unit{};
  }
  if (is_refusal(error)) {
    record(job,
           lane::Event{true, "DurableJobRefused",
                       "DurableJob " + creation.name + " could not be created: " + error.message});
  }
  if (error.code != ErrorCode::kAlreadyExists) co_return error;
  auto get = deps_.client.get(durable_path(job.namespace_, creation.name));
  const Result<JsonDocument> live = co_await get;
  if (!live) co_return live.error();
  kube::Object meta;
  const bool is_ours = kube::decode_meta(*live, meta) && meta.owner_uid == job.uid;
  if (is_ours) co_return await_watch(job, *live, *memory);
  memory->taken = creation.name;
  memory->taken_until = deps_.loop.now() + kTakenLook;
  look_again(job);
  co_return Unit{};
}

// The DurableJob is there, and the cache has none. A watch that claims to be up to date is not
// asked again at once.
Result<> LaneRequests::await_watch(const lane::BatchJob& job, const JsonView& live,
                                   LaneMemory& memory) {
  // The Job's queue came or went after the DurableJob was made. The replica that has its shard works
  // on both.
  const codecs::JobPtr durable = codecs::decode_job(live);
  if (durable && durable->job.status.settled && is_terminal(durable->job.status.phase)) {
    if (memory.settled && memory.settled->version == durable->version) {
      return make_error(ErrorCode::kConflict,
                        "the cache shows another DurableJob than the live one");
    }
    memory.settled = durable;
    look_again(job);
    return Unit{};
  }
  if (durable && !deps_.facts.holds_shard_of(*durable)) return Unit{};
  if (durable) deps_.look_for(durable->key());
  controller::raise(memory.durable_version, live);
  if (memory.durable_version <= deps_.facts.durable_version(job.namespace_)) {
    return make_error(ErrorCode::kConflict, "the watch does not show the Job's DurableJob");
  }
  look_again(job);
  return Unit{};
}

Task<Result<>> LaneRequests::look(const lane::BatchJob& job, LaneMemoryPtr memory) {
  const std::optional<lane::Record> record = lane::record_of(job);
  if (!record) co_return Unit{};
  auto get = deps_.client.get(durable_path(job.namespace_, record->name));
  const Result<JsonDocument> live = co_await get;
  if (!live && live.error().code != ErrorCode::kNotFound) co_return live.error();
  kube::Object meta;
  const bool is_there = live && kube::decode_meta(*live, meta) && meta.uid == record->uid &&
                        meta.owner_uid == job.uid;
  if (is_there) co_return await_watch(job, *live, *memory);
  memory->gone = record->uid;
  look_again(job);
  co_return Unit{};
}

Task<Result<bool>> LaneRequests::pods_left(std::string ns, std::string durable_uid) {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = std::string(reconciler::kJobUidLabel) + "=" + durable_uid;
  kind.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  kind.metadata_only = true;
  kind.decode = kube::decode_bare;
  auto list = deps_.client.list(kind, ns, "limit=1");
  const Result<kube::ListPage> answer = co_await list;
  if (!answer) co_return answer.error();
  co_return !answer->items.empty();
}

// A cache may be older than another replica's last decision. So this comes before writes that have
// no compare-and-swap on the Job.
Task<Result<>> LaneRequests::is_current(const lane::BatchJob& job) {
  auto get = deps_.client.get(batch_path(job.namespace_, job.name));
  const Result<JsonDocument> live = co_await get;
  if (!live) co_return live.error();
  kube::Object meta;
  if (kube::decode_meta(*live, meta) && meta.uid == job.uid && meta.version == job.version) {
    co_return Unit{};
  }
  co_return make_error(ErrorCode::kConflict, "the Job has changed");
}

Task<Result<>> LaneRequests::delete_strays(const lane::BatchJob& job,
                                           controller::Gate::Claim claim) {
  for (const codecs::JobPtr& one : deps_.facts.owned(job.namespace_, job.uid)) {
    if (!lane::is_stray(job, one->job)) continue;
    auto known = is_current(job);
    const Result<> current = co_await known;
    if (!current) co_return current.error();
    auto call = writer_.del(claim, durable_path(one->namespace_, one->name),
                            controller::preconditions(one->uid, one->version));
    const Result<JsonDocument> answer = co_await call;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  }
  co_return Unit{};
}

}  // namespace holdfast::lane_controller
