#include "operator/rescue/observer.h"

#include <algorithm>
#include <utility>

namespace holdfast::rescue {
namespace {

using reconciler::RescueAction;
using Fate = reconciler::Journal::Fate;
using std::chrono::seconds;

constexpr seconds kTick{1};
constexpr std::size_t kLooksAtOnce = 32;
constexpr seconds kLookAgain{5};
// A kubelet renews before it reports which pods it has lost with its node's memory.
constexpr seconds kGoesOn{60};
constexpr std::chrono::hours kKept{24 * 30};
constexpr const char* kJobLabel = "batch.kubernetes.io/job-name";

kube::Kind job_pod_kind() {
  kube::Kind kind = rescue_pod_kind();
  kind.name = "job-pods";
  kind.label_selector = kJobLabel;
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
      allowance_(config_.most_per_minute),
      store_({shared.loop, shared.client, shared.log}, config_.namespace_,
             [this] { note_ends(Fate::kUnseen); }) {
  nodes_.of_leases().keep_every_window(windows_, [](const std::string&) { return 0; });
  for (cache::Informer* const pods : {&job_pods_, &labelled_}) {
    PodView(*pods).on_change([this](const auto& change) { on_pod(change); });
  }
  nodes_.leases().on_change([this](const cache::Change& change) { on_lease(change); });
  // The reflectors' back-offs may have grown to 30 s, in which they would see nothing.
  nodes_.on_answers_again([this] {
    for (cache::Informer* const informer : informers()) informer->server_answers();
  });
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

void Observer::tick() {
  timer_ = shared_.loop.call_after(kTick, [this] { tick(); });
  if (!synced()) return;
  if (!std::exchange(begun_, true)) lease_.start();
  if (!lease_.acting()) {
    store_.lapse();
    returns_.clear();
    return;
  }
  if (store_.ready()) {
    const Nodes silent = nodes_.of_leases().silent_nodes(reconciler::kLeastRescueWindow);
    judge_all(job_pods_, silent);
    judge_all(labelled_, silent);
    note_returns();
    store_.journal().forget_before(now() - kKept);
  }
  store_.tick();
}

// ---- What would be freed.

void Observer::judge_all(PodView pods, const Nodes& silent) {
  const auto under_way = std::count_if(looks_.begin(), looks_.end(),
                                       [](const auto& look) { return look.second.under_way; });
  auto left = kLooksAtOnce - static_cast<std::size_t>(under_way);
  pods.for_each([&](const RescuePodPtr& pod) {
    if (left == 0 || !silent.contains(pod->pod.node) || store_.journal().is_decided(pod->uid))
      return;
    const auto before = looks_.find(pod->uid);
    if (before != looks_.end() &&
        (before->second.under_way || shared_.loop.now() < before->second.next)) {
      return;
    }
    // One that would be refused is looked at, too, until it is written down.
    const reconciler::RescueDecision decision = decide(*pod, nullptr);
    const bool is_new =
        decision.refusal && !store_.journal().has_open(pod->uid, to_string(*decision.refusal));
    if (decision.action != RescueAction::kLook && !is_new) return;
    --left;
    looks_[pod->uid].under_way = true;
    spawn(look(pod));
  });
}

// As the controller does, up to the write.
reconciler::RescueDecision Observer::decide(const CachedRescuePod& pod, const Rescuer::Look* look) {
  reconciler::RescueView view = rescuer_.view(pod, config_.owners, look);
  view.next_turn = allowance_.left(1, 1, shared_.loop.now());
  return decide_rescue(view);
}

Task<void> Observer::look(RescuePodPtr pod) {
  auto read = rescuer_.look(pod);
  const Result<Rescuer::Look> look = co_await read;
  // It may have ended during the look.
  const RescuePodPtr still = pod_of(pod->key(), pod->uid);
  if (!still || still->pod.ended) {
    looks_.erase(pod->uid);
    co_return;
  }
  looks_[pod->uid] = {false, shared_.loop.now() + kLookAgain};
  if (!look || !store_.ready()) co_return;
  const reconciler::RescueDecision decision = decide(*pod, &*look);
  looks_[pod->uid].next = shared_.loop.now() + decision.look_in.value_or(kLookAgain);
  const bool frees = decision.action == RescueAction::kFree;
  if (!frees && !decision.refusal) co_return;
  const std::string stays = frees ? "" : to_string(*decision.refusal);
  if (!store_.journal().write_down(entry_of(*pod, stays))) co_return;
  returns_.erase(pod->uid);
  if (frees) allowance_.freed(shared_.loop.now());
}

reconciler::JournalEntry Observer::entry_of(const CachedRescuePod& pod, std::string stays) {
  reconciler::JournalEntry entry;
  entry.namespace_ = pod.namespace_;
  entry.pod = pod.name;
  entry.uid = pod.uid;
  entry.node = pod.pod.node;
  entry.controller = pod.pod.owner.kind + "/" + pod.pod.owner.name;
  entry.due = now();
  entry.silent_since = entry.due - rescuer_.silence_of(pod);
  entry.stays = std::move(stays);
  return entry;
}

// ---- What became of it.

void Observer::on_pod(const PodView::Change& change) {
  const auto knows = [this](const RescuePodPtr& pod) {
    return pod && store_.journal().knows(pod->uid);
  };
  const bool is_gone = change.before && (!change.after || change.after->uid != change.before->uid);
  if (is_gone) looks_.erase(change.before->uid);
  if (knows(change.before) || knows(change.after)) note_ends(Fate::kEnded);
}

// A node that renews takes its pods up again.
void Observer::on_lease(const cache::Change& change) {
  if (!change.before || !change.after) return;
  for (const reconciler::JournalEntry& entry : store_.journal().entries()) {
    if (entry.node == change.after->name && entry.is_open()) {
      returns_.try_emplace(entry.uid, Return{shared_.loop.now(), now()});
    }
  }
}

RescuePodPtr Observer::pod_of(const std::string& key, const std::string& uid) {
  for (cache::Informer* const pods : {&job_pods_, &labelled_}) {
    const RescuePodPtr pod = PodView(*pods).get(key);
    if (pod && pod->uid == uid) return pod;
  }
  return nullptr;
}

// A pod that has succeeded went on.
void Observer::note_ends(Fate of_others) {
  for (const reconciler::JournalEntry& entry : store_.journal().open()) {
    const RescuePodPtr pod = pod_of(entry.key(), entry.uid);
    if (pod && !pod->pod.ended) continue;
    store_.journal().close(entry.uid, pod && pod->succeeded ? Fate::kWentOn : of_others, now());
    returns_.erase(entry.uid);
  }
}

// One that the cluster deleted meanwhile does not go on.
void Observer::note_returns() {
  for (const reconciler::JournalEntry& entry : store_.journal().open()) {
    const auto back = returns_.find(entry.uid);
    if (back == returns_.end() || shared_.loop.now() - back->second.seen < kGoesOn) continue;
    const RescuePodPtr pod = pod_of(entry.key(), entry.uid);
    if (!pod || pod->is_deleted) continue;
    store_.journal().close(entry.uid, Fate::kWentOn, back->second.at);
    returns_.erase(back);
  }
}

}  // namespace holdfast::rescue
