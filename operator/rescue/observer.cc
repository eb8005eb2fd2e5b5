#include "operator/rescue/observer.h"

#include <algorithm>
#include <utility>

#include "core/json.h"

namespace holdfast::rescue {
namespace {

using reconciler::RescueAction;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kTick{1};
constexpr minutes kSaveEvery{1};
constexpr seconds kRetry{10};
constexpr std::size_t kLooksAtOnce = 16;
constexpr std::chrono::hours kKept{24 * 30};
constexpr const char* kJobLabel = "batch.kubernetes.io/job-name";
constexpr const char* kNotEnded = "status.phase!=Succeeded,status.phase!=Failed";

kube::Kind job_pod_kind() {
  kube::Kind kind = rescue_pod_kind();
  kind.name = "job-pods";
  kind.label_selector = kJobLabel;
  kind.field_selector = kNotEnded;
  return kind;
}

}  // namespace

Observer::Observer(const cache::Informer::Dependencies& shared, Config config)
    : shared_(shared),
      config_(std::move(config)),
      job_pods_(shared, job_pod_kind(), config_.namespaces),
      labelled_(shared, rescue_pod_kind(), config_.namespaces),
      nodes_(
          {shared.loop, shared.client, shared.random, shared.log, job_pods_, config_.namespaces}),
      windows_(shared.loop, shared.log),
      rescuer_({shared.loop, shared.client, nodes_, gate_}),
      lease_(
          {shared.loop, shared.client, shared.log},
          {config_.namespace_, config_.self, config_.timings},
          {[this] { return windows_.record(0); },
           [this](const std::string& text) { windows_.carry(text); }, [this] { nodes_.proof(); }}),
      allowance_(config_.most_per_minute) {
  nodes_.of_leases().keep_every_window(windows_, [](const std::string&) { return 0; });
  for (cache::Informer* const pods : {&job_pods_, &labelled_}) {
    PodView(*pods).on_change([this](const auto& change) { on_pod(change); });
  }
  nodes_.leases().on_change([this](const cache::Change& change) { on_lease(change); });
}

Observer::~Observer() { shared_.loop.cancel(timer_); }

Time Observer::now() const { return shared_.client.server_clock().now(shared_.loop.now()); }

std::vector<cache::Informer*> Observer::informers() {
  return {&job_pods_, &labelled_, &nodes_.nodes(), &nodes_.leases()};
}

bool Observer::synced() {
  const auto all = informers();
  return std::all_of(all.begin(), all.end(), [](const auto* one) { return one->synced(); });
}

void Observer::start() {
  job_pods_.start();
  labelled_.start();
  nodes_.start();
  tick();
}

void Observer::stop(std::function<void()> stopped) {
  shared_.loop.cancel(timer_);
  lease_.stop([this, stopped = std::move(stopped)] {
    for (cache::Informer* const informer : informers()) informer->stop();
    stopped();
  });
}

// ---- What it sees.

void Observer::tick() {
  timer_ = shared_.loop.call_after(kTick, [this] { tick(); });
  if (!synced()) return;
  if (!std::exchange(record_.begun, true)) lease_.start();
  if (!lease_.acting()) {
    record_.loaded = record_.stale = false;
    return;
  }
  if (record_.busy || shared_.loop.now() < record_.again) return;
  if (!record_.loaded || record_.stale) return static_cast<void>(spawn(load()));
  const Nodes silent = nodes_.of_leases().silent_nodes(reconciler::kLeastRescueWindow);
  judge_all(job_pods_, silent);
  judge_all(labelled_, silent);
  journal_.forget_before(now() - kKept);
  // A journal without entries says, too, that somebody observes, and since when.
  const bool is_new = journal_.changes() != record_.changes || record_.version == 0;
  if (is_new && shared_.loop.now() - record_.written >= kSaveEvery) spawn(save());
}

void Observer::judge_all(PodView pods, const Nodes& silent) {
  pods.for_each([&](const RescuePodPtr& pod) {
    if (!silent.contains(pod->pod.node) || looking_.size() >= kLooksAtOnce) return;
    if (looking_.contains(pod->uid) || journal_.knows(pod->uid)) return;
    if (decide(*pod, nullptr) != RescueAction::kLook) return;
    looking_.insert(pod->uid);
    spawn(look(pod));
  });
}

// As the controller does, up to the write.
RescueAction Observer::decide(const CachedRescuePod& pod, const Rescuer::Look* look) {
  reconciler::RescueView view = rescuer_.view(pod, config_.owners, look);
  view.next_turn = allowance_.left(1, 1, shared_.loop.now());
  return decide_rescue(view).action;
}

Task<void> Observer::look(RescuePodPtr pod) {
  auto read = rescuer_.look(pod);
  const Result<Rescuer::Look> look = co_await read;
  looking_.erase(pod->uid);
  if (!look || !record_.loaded || decide(*pod, &*look) != RescueAction::kFree) co_return;
  reconciler::JournalEntry entry;
  entry.namespace_ = pod->namespace_;
  entry.pod = pod->name;
  entry.uid = pod->uid;
  entry.node = pod->pod.node;
  entry.controller = pod->pod.owner.kind + "/" + pod->pod.owner.name;
  entry.due = now();
  entry.silent_since = entry.due - rescuer_.silence_of(*pod);
  // Its end came during the look.
  if (!pod_of(entry)) co_return;
  allowance_.freed(shared_.loop.now());
  journal_.would_free(std::move(entry));
}

void Observer::on_pod(const PodView::Change& change) {
  const RescuePodPtr& pod = change.after ? change.after : change.before;
  if (!journal_.knows(pod->uid) && !(change.before && journal_.knows(change.before->uid))) return;
  note_ends();
}

// A node that renews takes its pods up again. Those that the cluster deleted meanwhile end.
void Observer::on_lease(const cache::Change& change) {
  if (!change.before || !change.after) return;
  for (const reconciler::JournalEntry& entry : open_entries()) {
    if (entry.node != change.after->name) continue;
    const RescuePodPtr pod = pod_of(entry);
    if (pod && !pod->is_deleted) journal_.pod_went_on(entry.uid, now());
  }
}

RescuePodPtr Observer::pod_of(const reconciler::JournalEntry& entry) {
  for (cache::Informer* const pods : {&job_pods_, &labelled_}) {
    const RescuePodPtr pod = PodView(*pods).get(entry.namespace_ + "/" + entry.pod);
    if (pod && pod->uid == entry.uid && !pod->pod.ended) return pod;
  }
  return nullptr;
}

std::vector<reconciler::JournalEntry> Observer::open_entries() const {
  std::vector<reconciler::JournalEntry> open;
  for (const reconciler::JournalEntry& entry : journal_.entries()) {
    if (entry.is_open()) open.push_back(entry);
  }
  return open;
}

void Observer::note_ends() {
  for (const reconciler::JournalEntry& entry : open_entries()) {
    if (!pod_of(entry)) journal_.pod_ended(entry.uid, now());
  }
}

// ---- Its record.

Task<void> Observer::load() {
  record_.busy = true;
  auto get = shared_.client.get(
      kube::object_path("/api/v1", "configmaps", config_.namespace_, reconciler::kJournalName));
  const Result<JsonDocument> found = co_await get;
  record_.busy = false;
  if (!found && found.error().code != ErrorCode::kNotFound) co_return refused(found.error());
  kube::Object meta;
  const bool is_there = found && kube::decode_meta(*found, meta);
  record_.uid = is_there ? meta.uid : "";
  record_.version = is_there ? meta.version : 0;
  record_.stale = false;
  // This replica alone writes it, so what is not written yet counts: the change was somebody's
  // edit, or our own write whose answer was lost. Who deletes it begins anew.
  if (is_there && record_.loaded) co_return;
  journal_ =
      is_there ? reconciler::decode_journal(string_at(at(*found, "data"), reconciler::kJournalKey))
               : reconciler::Journal();
  record_.since = is_there ? string_at(at(*found, "data"), reconciler::kSinceKey) : "";
  if (record_.since.empty()) record_.since = format_time(now());
  record_.changes = journal_.changes();
  record_.written = is_there ? shared_.loop.now() : SteadyTime{};
  record_.loaded = true;
  note_ends();
}

Task<void> Observer::save() {
  record_.busy = true;
  record_.written = shared_.loop.now();
  const std::uint64_t changes = journal_.changes();
  Json meta = {{"name", reconciler::kJournalName}, {"namespace", config_.namespace_}};
  if (record_.version != 0) {
    meta["uid"] = record_.uid;
    meta["resourceVersion"] = std::to_string(record_.version);
  }
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", std::move(meta)},
                     {"data",
                      {{reconciler::kJournalKey, reconciler::encode_journal(journal_)},
                       {reconciler::kSinceKey, record_.since}}}};
  kube::CallOptions options;
  options.answer_with_metadata = true;
  auto call =
      record_.version == 0
          ? shared_.client.post(kube::collection_path("/api/v1", "configmaps", config_.namespace_),
                                body.dump(), options)
          : shared_.client.put(kube::object_path("/api/v1", "configmaps", config_.namespace_,
                                                 reconciler::kJournalName),
                               body.dump(), options);
  const Result<JsonDocument> answer = co_await call;
  record_.busy = false;
  kube::Object written;
  if (answer && kube::decode_meta(*answer, written)) {
    record_.uid = written.uid;
    record_.version = written.version;
    record_.changes = changes;
    co_return;
  }
  const Error error = answer ? make_error(ErrorCode::kInvalid, "no ConfigMap") : answer.error();
  record_.stale = error.code == ErrorCode::kConflict || error.code == ErrorCode::kNotFound ||
                  error.code == ErrorCode::kAlreadyExists;
  if (!record_.stale) refused(error);
}

void Observer::refused(const Error& error) {
  record_.again = shared_.loop.now() + kRetry;
  if (error.code == ErrorCode::kCancelled) return;
  shared_.log.warn("the observer's ConfigMap cannot be read or written; it is tried again",
                   {{"error", error.message}});
}

}  // namespace holdfast::rescue
