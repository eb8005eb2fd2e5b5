#include "plugin/explain/facts_reader.h"
#include "plugin/base/installation.h"
#include "plugin/base/replica.h"

#include <algorithm>
#include <utility>

#include "plugin/explain/outlook.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

constexpr const char* kNodeLeases = "kube-node-lease";
// All jobs of a namespace may be many megabytes.
constexpr seconds kListAgain{30};

Json get_or_null(Api& api, const Resource& resource, const std::string& namespace_,
                 const std::string& name) {
  if (name.empty()) return {};
  Result<Json> object = api.get(resource, namespace_, name);
  return object.ok() ? std::move(*object) : Json();
}

std::vector<Json> list_or_none(Api& api, const Resource& resource, const std::string& namespace_,
                               const Selector& selector) {
  Result<std::vector<Json>> list = api.list(resource, namespace_, selector);
  return list.ok() ? std::move(*list) : std::vector<Json>();
}

}  // namespace

FactsReader::FactsReader(Api& api, Json job, std::string operator_namespace, Line line)
    : api_(api),
      operator_namespace_(std::move(operator_namespace)),
      line_(line),
      namespace_(string_at(at(job, "metadata"), "namespace")),
      name_(string_at(at(job, "metadata"), "name")) {
  take(std::move(job));
}

Result<> FactsReader::read() {
  Result<Json> job = api_.get(kJobs, namespace_, name_);
  if (!job.ok()) return job.error();
  take(std::move(*job));
  return Unit{};
}

void FactsReader::take(Json job) {
  facts_.job = std::move(job);
  const JobText text = read_job(facts_.job);
  read_places(text);
  read_run(text);
  facts_.events = list_or_none(
      api_, kEvents, namespace_,
      {.labels = "", .fields = "involvedObject.kind=DurableJob,involvedObject.name=" + name_});
  facts_.operator_leases.clear();
  facts_.operator_absent.clear();
  facts_.operator_unseen.clear();
  if (!text.has_ended()) read_operator();
}

// Most users may list Leases in few namespaces.
void FactsReader::read_operator() {
  if (!operator_namespace_.empty()) {
    if (read_operator_in(operator_namespace_)) return;
    if (facts_.operator_unseen.empty()) {
      facts_.operator_absent = "in namespace " + operator_namespace_;
    }
    return;
  }
  if (read_operator_in("")) return;
  if (facts_.operator_unseen.empty()) {
    facts_.operator_absent = "in this cluster";
    return;
  }
  facts_.operator_unseen.clear();
  if (read_operator_in(kUsualNamespace)) return;
  if (facts_.operator_unseen.empty()) {
    facts_.operator_unseen = std::string("not looked at: there is no operator in ") +
                             kUsualNamespace + ", and you have no right to list all Leases.";
  }
  facts_.operator_unseen += " If it is elsewhere, give --operator-namespace.";
}

// True: nothing is left to say. Else none is there, or operator_unseen says why nobody knows.
bool FactsReader::read_operator_in(const std::string& where) {
  Result<std::vector<Json>> leases =
      api_.list(kLeases, where, {.labels = "holdfast.dev/lease", .fields = ""});
  if (leases.ok()) {
    facts_.operator_leases = std::move(*leases);
    // A replica that stops takes its own Lease away, and leaves those of its shards.
    return std::any_of(facts_.operator_leases.begin(), facts_.operator_leases.end(), is_replica);
  }
  // A server that does not answer says nothing about the operator.
  if (leases.error().code != ErrorCode::kForbidden) return true;
  facts_.operator_unseen = "not looked at: you have no right to list Leases in " + where + ".";
  return false;
}

void FactsReader::read_places(const JobText& job) {
  const std::string reason = job.waiting ? job.waiting->reason : "";
  facts_.queue = reason == "Queued" ? get_or_null(api_, kQueues, namespace_, job.queue) : Json();
  const bool needs_pool = reason == "WorkerAwaited" || reason == "AwaitsEmptyWorker";
  facts_.pool = needs_pool ? get_or_null(api_, kPools, namespace_, job.pool) : Json();
  if (!facts_.queue.is_object() || line_ == Line::kHead) {
    facts_.queue_jobs.clear();
    return;
  }
  const Time now = api_.now();
  if (listed_ && now - *listed_ < kListAgain) return;
  facts_.queue_jobs = list_or_none(api_, kJobs, namespace_, {});
  listed_ = now;
}

// The pod of the last end has its last words, and Leases have the bounds of the open attempt.
void FactsReader::read_run(const JobText& job) {
  facts_.pods.clear();
  facts_.lease = Json();
  facts_.node_lease = Json();
  if (!job.history.empty() && job.history.back().outcome != "Succeeded") {
    facts_.pods.push_back(get_or_null(api_, kPods, namespace_, job.history.back().pod));
  }
  if (!job.has_ended() && stops_pods(outlook_of(facts_.job, job, api_.now()))) {
    // Those that have ended may be thousands.
    const Selector living = {.labels = std::string(reconciler::kJobUidLabel) + "=" + job.uid,
                             .fields = "status.phase!=Succeeded,status.phase!=Failed"};
    for (Json& pod : list_or_none(api_, kPods, namespace_, living)) {
      facts_.pods.push_back(std::move(pod));
    }
  }
  if (job.many_runs() || job.runs.empty() || job.runs.front().next_attempt) return;
  if (at(job.spec, "heartbeat").is_object()) {
    facts_.lease = get_or_null(api_, kLeases, namespace_, "holdfast-" + job.uid);
  }
  facts_.node_lease = get_or_null(api_, kLeases, kNodeLeases, job.runs.front().node);
}

}  // namespace holdfast::plugin
