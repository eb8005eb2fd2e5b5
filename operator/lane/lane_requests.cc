// The requests of one reconcile.
#include "operator/codecs/job_codec.h"
#include "operator/jobs/writes.h"
#include "operator/lane/lane_controller.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

// Then a name that was taken may be free.
constexpr std::chrono::seconds kTakenLook{30};

// No later try can succeed. What an admission webhook or a policy refuses, it may allow later.
bool is_final(const Error& error) {
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count &&
         !error.message.starts_with("admission webhook");
}

std::string durable_path(const std::string& ns, const std::string& name) {
  return kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, ns, name);
}

}  // namespace

Task<Status> LaneController::write_status(const lane::BatchJob& job, const lane::StatusWrite& write,
                                          std::shared_ptr<Memory> memory, Ownership::Claim claim) {
  kube::CallOptions options;
  options.answer_with_metadata = true;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  auto put = client_.put(kube::object_path(lane::kBatchGroupPath, lane::kBatchPlural,
                                           job.namespace_, job.name, "status"),
                         batch_status_body(job, write.metadata, write.status), options);
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  memory->last_write = loop_.now();
  raise(memory->job_version, *answer);
  co_return Unit{};
}

Task<Status> LaneController::send(const lane::BatchJob& job, std::string name,
                                  std::uint64_t& version, lane::Source source, Json fields,
                                  Memory& memory, Ownership::Claim claim) {
  kube::CallOptions options;
  options.answer_with_metadata = true;
  options.content_type = "application/json-patch+json";
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  auto call = client_.patch(durable_path(job.namespace_, name),
                            lane::patch_body(version, source, fields), options);
  const Result<JsonDocument> answer = co_await call;
  if (!answer) co_return answer.error();
  raise(memory.durable_version, *answer);
  raise(version, *answer);
  co_return Unit{};
}

Task<Status> LaneController::patch(const lane::BatchJob& job, const lane::Patch& patch,
                                   std::shared_ptr<Memory> memory, Ownership::Claim claim) {
  auto known = is_current(job);
  const Status current = co_await known;
  if (!current) co_return current.error();
  std::uint64_t version = patch.version;
  lane::View::Refused refused{patch.wanted, patch.refused};
  const lane::Source source = patch.refused.empty() ? patch.wanted : patch.recorded;
  auto together = send(job, patch.name, version, source, patch.fields, *memory, claim);
  const Status done = co_await together;
  memory->refused.reset();
  if (!done && !is_refusal(done.error())) co_return done.error();
  if (!done) {
    for (const Json& field : lane::one_by_one(patch.fields)) {
      auto alone = send(job, patch.name, version, patch.recorded, field, *memory, claim);
      const Status sent = co_await alone;
      if (sent) continue;
      // A suspension and a resume always go through.
      if (!is_refusal(sent.error()) || field.contains("suspend")) {
        co_return sent.error();
      }
      refused.fields.emplace(field.begin().key(), sent.error().message);
    }
  }
  if (refused.fields.empty()) co_return Unit{};
  tell(job, lane::Event{true, "ChangeRefused",
                        "DurableJob " + patch.name +
                            " keeps its old values: " + lane::text_of(refused.fields)});
  memory->refused = std::move(refused);
  pool_.queue().add(job.namespace_ + "/" + job.name);
  co_return Unit{};
}

Task<Status> LaneController::create(const lane::BatchJob& job, const lane::Creation& creation,
                                    std::shared_ptr<Memory> memory, Ownership::Claim claim) {
  kube::CallOptions options;
  options.answer_with_metadata = true;
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  auto post = client_.post(
      kube::collection_path(reconciler::kJobGroupPath, reconciler::kJobPlural, job.namespace_),
      creation.body, options);
  const Result<JsonDocument> answer = co_await post;
  memory->created.clear();
  if (answer) {
    memory->created = string_at(at(*answer, "metadata"), "uid");
    raise(memory->durable_version, *answer);
    co_return Unit{};
  }
  const Error& error = answer.error();
  if (is_final(error)) {
    memory->refusal = "the DurableJob cannot be created: " + error.message;
    pool_.queue().add(job.namespace_ + "/" + job.name);
    co_return Unit{};
  }
  if (error.code == ErrorCode::kForbidden || error.code == ErrorCode::kInvalid) {
    tell(job,
         lane::Event{true, "DurableJobRefused",
                     "DurableJob " + creation.name + " could not be created: " + error.message});
  }
  if (error.code != ErrorCode::kAlreadyExists) co_return error;
  auto get = client_.get(durable_path(job.namespace_, creation.name));
  const Result<JsonDocument> live = co_await get;
  if (!live) co_return live.error();
  kube::Object meta;
  const bool is_ours = kube::decode_meta(*live, meta) && meta.owner_uid == job.uid;
  if (is_ours) co_return await_watch(job, *live, *memory);
  memory->taken = creation.name;
  memory->taken_until = loop_.now() + kTakenLook;
  pool_.queue().add(job.namespace_ + "/" + job.name);
  co_return Unit{};
}

// The DurableJob is there, and the cache has none. A watch that claims to be up to date is not
// asked again at once.
Status LaneController::await_watch(const lane::BatchJob& job, const JsonView& live,
                                   Memory& memory) {
  raise(memory.durable_version, live);
  if (memory.durable_version <= jobs_->version(job.namespace_)) {
    return make_error(ErrorCode::kConflict, "the watch does not show the Job's DurableJob");
  }
  pool_.queue().add(job.namespace_ + "/" + job.name);
  return Unit{};
}

Task<Status> LaneController::look(const lane::BatchJob& job, std::shared_ptr<Memory> memory) {
  const std::optional<lane::Record> record = lane::record_of(job);
  if (!record) co_return Unit{};
  auto get = client_.get(durable_path(job.namespace_, record->name));
  const Result<JsonDocument> live = co_await get;
  if (!live && live.error().code != ErrorCode::kNotFound) co_return live.error();
  kube::Object meta;
  const bool is_there = live && kube::decode_meta(*live, meta) && meta.uid == record->uid &&
                        meta.owner_uid == job.uid;
  if (is_there) co_return await_watch(job, *live, *memory);
  memory->gone = record->uid;
  pool_.queue().add(job.namespace_ + "/" + job.name);
  co_return Unit{};
}

Task<Result<bool>> LaneController::pods_left(std::string ns, std::string durable_uid) {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = std::string(reconciler::kJobUidLabel) + "=" + durable_uid;
  kind.field_selector = "status.phase!=Succeeded,status.phase!=Failed";
  kind.metadata_only = true;
  kind.decode = kube::decode_bare;
  auto list = client_.list(kind, ns, "limit=1");
  const Result<kube::ListPage> answer = co_await list;
  if (!answer) co_return answer.error();
  co_return !answer->items.empty();
}

// A cache may be older than another replica's last decision. So this comes before writes that have
// no compare-and-swap on the Job.
Task<Status> LaneController::is_current(const lane::BatchJob& job) {
  auto get = client_.get(
      kube::object_path(lane::kBatchGroupPath, lane::kBatchPlural, job.namespace_, job.name));
  const Result<JsonDocument> live = co_await get;
  if (!live) co_return live.error();
  kube::Object meta;
  if (kube::decode_meta(*live, meta) && meta.uid == job.uid && meta.version == job.version) {
    co_return Unit{};
  }
  co_return make_error(ErrorCode::kConflict, "the Job has changed");
}

Task<Status> LaneController::delete_strays(const lane::BatchJob& job, Ownership::Claim claim) {
  for (const JobPtr& one : owned(job.namespace_, job.uid)) {
    if (!lane::is_stray(job, one->job)) continue;
    auto known = is_current(job);
    const Status current = co_await known;
    if (!current) co_return current.error();
    kube::CallOptions options;
    if (auto error = membership_.may_write(claim, options)) co_return *error;
    auto call = client_.del(durable_path(one->namespace_, one->name),
                            preconditions(one->uid, one->version), options);
    const Result<JsonDocument> answer = co_await call;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  }
  co_return Unit{};
}

// The cache has only the name of a Job that has finished.
Task<ReconcileResult> LaneController::delete_strays_of_finished(BatchJobPtr found,
                                                                Ownership::Claim claim) {
  ReconcileResult result;
  if (!has_work(*found)) co_return result;
  auto read = whole(found);
  const Result<lane::BatchJob> job = co_await read;
  Status cleared = Unit{};
  if (job) {
    auto strays = delete_strays(*job, claim);
    cleared = co_await strays;
  }
  const std::optional<Error> error = !job       ? std::optional(job.error())
                                     : !cleared ? std::optional(cleared.error())
                                                : std::nullopt;
  if (error && error->code != ErrorCode::kNotFound) result.error = error;
  co_return result;
}

}  // namespace holdfast::controller
