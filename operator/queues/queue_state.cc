#include "operator/queues/queue_state.h"

#include <algorithm>
#include <utility>

#include "operator/jobs/pod_index.h"

namespace holdfast::queues {
namespace {

// The first list of a kind may fail some times.
constexpr std::chrono::seconds kReadingTime{60};

std::string queue_key(const codecs::CachedJob& job) {
  return job.namespace_ + "/" + job.job.queue->name;
}

}  // namespace

QueueState::QueueState(Dependencies dependencies) : deps_(std::move(dependencies)) {
  deps_.jobs.on_change([this](const auto& change) { on_job(change); });
  deps_.pods.on_change([this](const auto& change) { on_pod(change); });
  deps_.queues.on_change([this](const auto& change) { on_queue(change); });
}

void QueueState::wake_all(int shard) {
  const auto wake = [&](const std::string& key) {
    if (deps_.membership.shard_of(kube::namespace_of(key)) == shard) deps_.wake(key);
  };
  for (const auto& [key, book] : books_) wake(key);
  deps_.queues.for_each([&](const QueuePtr& queue) { wake(queue->key()); });
}

std::shared_ptr<QueueBook> QueueState::book_of(const std::string& key) {
  std::shared_ptr<QueueBook>& book = books_[key];
  if (!book) book = std::make_shared<QueueBook>();
  return book;
}

QueueBook* QueueState::find(const std::string& key) const {
  const auto found = books_.find(key);
  return found == books_.end() ? nullptr : found->second.get();
}

void QueueState::forget_if_empty(const std::string& key) {
  const QueueBook* const book = find(key);
  if (book && book->line.empty()) books_.erase(key);
}

void QueueState::put(const codecs::CachedJob& job) {
  book_of(queue_key(job))->put(job, deps_.old_pods.look(job), now());
}

// ---- What the caches show.

void QueueState::on_job(const cache::View<codecs::CachedJob>::Change& change) {
  const bool is_gone = change.before && change.before->job.queue &&
                       (!change.after || change.after->uid != change.before->uid);
  if (is_gone) {
    const codecs::CachedJob& job = *change.before;
    book_of(queue_key(job))->erase(job.uid);
    deps_.old_pods.forget(job);
    deps_.wake(queue_key(job));
  }
  if (!change.after || !change.after->job.queue) return;
  put(*change.after);
  deps_.wake(queue_key(*change.after));
}

void QueueState::on_pod(const cache::View<codecs::CachedPod>::Change& change) {
  const codecs::JobPtr job = deps_.jobs.get(jobs::job_key(change.latest()));
  if (!job || !job->job.queue) return;
  if (job->job.spec.pod_replacement != reconciler::PodReplacementPolicy::kFailed) return;
  put(*job);
  deps_.wake(queue_key(*job));
}

void QueueState::on_queue(const cache::View<CachedQueue>::Change& change) {
  const std::string key = change.latest().key();
  deps_.wake(key);
  if (change.before && change.after) return;
  look_at_waiting(key);  // jobs say whether their queue is there
}

// What was known of the jobs' old pods may be from before these pods left the cache.
void QueueState::begin_shards(const std::set<int>& shards, const std::string& watched) {
  std::vector<std::string> keys;
  for (const auto& [key, book] : books_) {
    const std::string ns = kube::namespace_of(key);
    if (!watched.empty() && ns != watched) continue;
    if (shards.count(deps_.membership.shard_of(ns)) == 0) continue;
    book->line.for_each(
        [&, &ns = ns](const reconciler::QueuedJob& job) { keys.push_back(ns + "/" + job.name); });
  }
  for (const std::string& key : keys) {
    const codecs::JobPtr job = deps_.jobs.get(key);
    if (job && job->job.queue) put(*job);
  }
  for (const int shard : shards) wake_all(shard);
}

void QueueState::on_progress() {
  look_at_unsure();
  look_at_unread();
}

void QueueState::look_at_unsure() {
  for (const codecs::JobPtr& job : deps_.old_pods.take_unsure()) {
    put(*job);
    if (!deps_.old_pods.is_unsure(*job)) deps_.wake(queue_key(*job));
  }
}

std::optional<Duration> QueueState::give_back(const std::string& ns) {
  const OldPodsMonitor::Freed freed = deps_.old_pods.take_freed(ns);
  for (const codecs::JobPtr& job : freed.jobs) {
    put(*job);
    deps_.wake(queue_key(*job));
  }
  return freed.next;
}

void QueueState::time_travelled() {
  deps_.old_pods.time_travelled();
  for (auto& [key, book] : books_) {
    book->time_travelled();
    deps_.wake(key);
  }
}

// ---- Whether a queue is there.

// While the namespace's queues have not been read, nobody knows. Queues that cannot be read for
// long are as good as missing: the jobs must say why they wait.
bool QueueState::has_read_queues(const std::string& ns) const {
  return deps_.queues->version(ns) > 0 || deps_.loop.now() - began_ >= kReadingTime;
}

void QueueState::look_at_waiting(const std::string& key) {
  const QueueBook* const book = find(key);
  if (!book) return;
  book->line.for_each([&](const reconciler::QueuedJob& job) {
    if (job.waits)
      deps_.look_at(kube::namespace_of(key) + "/" + job.name, controller::Priority::kLow);
  });
}

void QueueState::look_at_unread() {
  for (auto key = unread_.begin(); key != unread_.end();) {
    if (!has_read_queues(kube::namespace_of(*key))) {
      ++key;
      continue;
    }
    look_at_waiting(*key);
    key = unread_.erase(key);
  }
}

// ---- What the controller of jobs asks.

reconciler::PermitView QueueState::of(const codecs::CachedJob& job) const {
  reconciler::PermitView view;
  const std::string key = queue_key(job);
  const bool is_read = has_read_queues(job.namespace_);
  view.no_queue = is_read && !queue(key);
  if (!is_read) unread_.insert(key);
  const QueueBook* const book = find(key);
  if (!book) return view;
  view.admitted = book->is_admitted(job.uid, job.job.status.attempt);
  view.waited = book->waited(job.uid, deps_.loop.now());
  return view;
}

void QueueState::ask(const codecs::CachedJob& job, bool wants, bool pod_may_come) {
  // It decided on this version, and a newer one may have come meanwhile.
  const codecs::JobPtr cached = deps_.jobs.get(job.key());
  if (!cached || cached->uid != job.uid || cached->version != job.version) return;
  const std::shared_ptr<QueueBook> book = book_of(queue_key(job));
  const auto holds = [&] {
    const reconciler::QueuedJob* const found = book->line.find(job.uid);
    return found && found->holds;
  };
  const bool held = holds();
  const bool is_news = !pod_may_come && deps_.old_pods.none_comes(job);
  if (is_news) put(job);
  book->ask(job, wants, deps_.old_pods.look(job), deps_.loop.now(), now());
  // The job is looked at whenever the place of one of its attempts may have become empty.
  if (job.job.has_pool) put(job);
  if (wants || is_news || held != holds()) deps_.wake(queue_key(job));
}

std::vector<QueueCount> QueueState::counts() const {
  std::vector<QueueCount> all;
  for (const auto& [key, book] : books_) {
    const std::string ns = kube::namespace_of(key);
    if (!deps_.membership.holds(ns) || !queue(key)) continue;
    QueueCount count;
    count.namespace_ = ns;
    count.name = key.substr(ns.size() + 1);
    count.running = book->line.used();
    count.waiting = book->line.waiting();
    const auto since = book->line.oldest_since();
    if (since) count.oldest_wait = std::max(Duration::zero(), now() - *since);
    count.lag = book->lag(deps_.loop.now());
    all.push_back(std::move(count));
  }
  return all;
}

}  // namespace holdfast::queues
