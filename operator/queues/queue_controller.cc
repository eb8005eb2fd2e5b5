#include "operator/queues/queue_controller.h"

#include <algorithm>
#include <utility>

#include "operator/jobs/job_controller.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/refusals.h"

namespace holdfast::controller {
namespace {

// Other claims may share the comparison.
constexpr std::chrono::milliseconds kOtherEvents{200};
// Only the numbers in the status wait for it.
constexpr std::chrono::seconds kNoHurry{3};
// The first list of a kind may fail some times.
constexpr std::chrono::seconds kReadingTime{60};
// Before the next step of a comparison: the watch may bring what differs, and a request may fail.
constexpr std::chrono::milliseconds kNextLook{200};

std::string queue_key(const CachedJob& job) { return job.namespace_ + "/" + job.job.queue->name; }

ReconcilePool::Config pool_config() {
  ReconcilePool::Config config;
  config.workers = kQueueWorkers;
  return config;
}

}  // namespace

QueueController::QueueController(Dependencies dependencies)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      telemetry_(dependencies.telemetry),
      jobs_(dependencies.jobs),
      pods_(dependencies.pods),
      queues_(dependencies.queues),
      membership_(dependencies.membership),
      pod_shards_(dependencies.pod_shards),
      look_at_(std::move(dependencies.look_at)),
      has_left_(std::move(dependencies.has_left)),
      jobs_check_(client_, *jobs_, moments_, log_, [this] { on_progress(); }),
      pods_check_(client_, *pods_, moments_, log_, [this] { on_progress(); }),
      pool_({loop_, log_}, pool_config(),
            [this](std::string key) { return reconcile(std::move(key)); }) {
  jobs_.on_change([this](const auto& change) { on_job(change); });
  pods_.on_change([this](const auto& change) { on_pod(change); });
  queues_.on_change([this](const auto& change) { on_queue(change); });
}

void QueueController::look_at_all(int shard) {
  const auto look_at = [&](const std::string& key) {
    if (membership_.shard_of(namespace_of(key)) == shard) pool_.queue().add(key);
  };
  for (const auto& [key, book] : books_) look_at(key);
  queues_.for_each([&](const auto& object) { look_at(object->key()); });
}

// What was known of the jobs' old pods may be from before these pods left the cache.
void QueueController::begin_pods(const std::set<int>& shards, const std::string& watched) {
  std::vector<std::string> keys;
  for (const auto& [key, book] : books_) {
    const std::string ns = namespace_of(key);
    if (!watched.empty() && ns != watched) continue;
    if (shards.count(membership_.shard_of(ns)) == 0) continue;
    book->line.for_each(
        [&, &ns = ns](const reconciler::QueuedJob& job) { keys.push_back(ns + "/" + job.name); });
  }
  for (const std::string& key : keys) {
    const auto job = jobs_.get(key);
    if (job && job->job.queue) put(*job);
  }
  for (const int shard : shards) look_at_all(shard);
}

// ---- What the caches tell.

std::shared_ptr<QueueBook> QueueController::book_of(const std::string& key) {
  std::shared_ptr<QueueBook>& book = books_[key];
  if (!book) book = std::make_shared<QueueBook>();
  return book;
}

QueuePtr QueueController::queue(const std::string& key) const { return queues_.get(key); }

// While the namespace's queues have not been read, nobody knows. Queues that cannot be read for
// long are as good as missing: the jobs must say why they wait.
bool QueueController::has_read_queues(const std::string& ns) const {
  return queues_->version(ns) > 0 || loop_.now() - began_ >= kReadingTime;
}

bool QueueController::is_missing(const std::string& key) const {
  return !queues_.get(key) && has_read_queues(namespace_of(key));
}

void QueueController::look_at_waiting(const std::string& key) {
  const auto book = books_.find(key);
  if (book == books_.end()) return;
  book->second->line.for_each([&](const reconciler::QueuedJob& job) {
    if (job.waits) look_at_(namespace_of(key) + "/" + job.name, Priority::kLow);
  });
}

void QueueController::look_at_unread() {
  for (auto key = unread_.begin(); key != unread_.end();) {
    if (!has_read_queues(namespace_of(*key))) {
      ++key;
      continue;
    }
    look_at_waiting(*key);
    key = unread_.erase(key);
  }
}

// Of attempts that have ended. A job of a pool has no pods of its own.
bool QueueController::any_slot_is_taken(const CachedJob& job) const {
  const auto& runs = job.job.status.runs;
  return std::any_of(runs.begin(), runs.end(), [&](const reconciler::Run& run) {
    return run.at_worker() && !run.open() && !has_left_(job, run);
  });
}

// A cache of pods that is older than the job may not show its last pod yet.
OldPods QueueController::old_pods(const CachedJob& job) {
  if (job.job.spec.pod_replacement != reconciler::PodReplacementPolicy::kFailed) {
    forget_rest(job);
    return OldPods::kNone;
  }
  // begin_pods() asks again. Of other replicas' jobs nothing has to be known.
  if (!pod_shards_.read(membership_.shard_of(job.namespace_), job.namespace_)) {
    forget_rest(job);
    return OldPods::kUnknown;
  }
  if (any_slot_is_taken(job)) {
    forget_rest(job);
    return OldPods::kThere;
  }
  const auto pods = pods_.by_index(kByJob, job.key());
  const bool is_there = std::any_of(pods.begin(), pods.end(), [&](const auto& pod) {
    return pod->names(job.uid) && !pod->pod.ended();
  });
  const reconciler::Status& status = job.job.status;
  const bool rests =
      status.attempt > 0 && !holds_permit(status.phase) && !is_terminal(status.phase);
  if (is_there || !rests) {
    coming_.forget(job);
    forget_rest(job);
    return is_there ? OldPods::kThere : OldPods::kNone;
  }
  if (coming_.may_come(job, now(), loop_.now())) return OldPods::kThere;
  // Its later writes change nothing of that.
  const auto [rested, is_new] = rested_.try_emplace(job.uid, 0);
  if (is_new) rested->second = moments_.next();
  const cache::Moment since = rested->second;
  if (pods_check_.shown(job.namespace_) >= since) {
    unsure_[job.namespace_].since.erase(job.key());
    return OldPods::kNone;
  }
  unsure_[job.namespace_].since.try_emplace(job.key(), loop_.now());
  pods_check_.begin(job.namespace_);
  return OldPods::kUnknown;
}

void QueueController::forget_rest(const CachedJob& job) {
  if (const auto unsure = unsure_.find(job.namespace_); unsure != unsure_.end()) {
    unsure->second.since.erase(job.key());
  }
  rested_.erase(job.uid);
}

void QueueController::look_at_unsure() {
  std::erase_if(unsure_, [](const auto& entry) { return entry.second.since.empty(); });
  for (auto& [ns, unsure] : unsure_) {
    // Each event comes here, and there may be thousands of jobs.
    if (std::exchange(unsure.looked_at, pods_check_.shown(ns)) == pods_check_.shown(ns)) continue;
    std::vector<std::string> keys;
    for (const auto& [key, since] : unsure.since) keys.push_back(key);
    for (const std::string& key : keys) {
      const auto job = jobs_.get(key);
      if (!job || !job->job.queue) {
        unsure.since.erase(key);
        continue;
      }
      put(*job);
      if (unsure.since.count(key) == 0) pool_.queue().add(queue_key(*job));
    }
  }
}

// None: no job of the queue's namespace keeps its permit only because the cache of pods is old.
std::optional<Duration> QueueController::renew_pods(const std::string& ns) {
  std::optional<Duration> look;
  const auto unsure = unsure_.find(ns);
  if (unsure == unsure_.end()) return look;
  for (const auto& [key, since] : unsure->second.since) {
    const Duration left = since + kOtherEvents - loop_.now();
    if (left <= Duration::zero()) pods_check_.compare(ns);
    const Duration next = left > Duration::zero() ? left : Duration(kNextLook);
    look = std::min(look.value_or(next), next);
  }
  return look;
}

// Jobs whose pods come no more give their permits back. Returns when to look again.
std::optional<Duration> QueueController::look_at_coming(const std::string& ns) {
  const ComingPods::Look look = coming_.look(ns, loop_.now());
  for (const std::string& key : look.over) {
    const auto job = jobs_.get(key);
    if (!job || !job->job.queue) continue;
    put(*job);
    pool_.queue().add(queue_key(*job));
  }
  return look.next;
}

void QueueController::put(const CachedJob& job) {
  book_of(queue_key(job))->put(job, old_pods(job), now());
}

void QueueController::on_job(const cache::View<CachedJob>::Change& change) {
  const bool is_gone = change.before && change.before->job.queue &&
                       (!change.after || change.after->uid != change.before->uid);
  if (is_gone) {
    const CachedJob& job = *change.before;
    book_of(queue_key(job))->erase(job.uid);
    coming_.forget(job);
    forget_rest(job);
    pool_.queue().add(queue_key(job));
  }
  if (!change.after || !change.after->job.queue) return;
  put(*change.after);
  pool_.queue().add(queue_key(*change.after));
}

void QueueController::on_pod(const cache::View<CachedPod>::Change& change) {
  const CachedPod& pod = change.latest();
  const auto job = jobs_.get(job_key(pod));
  if (!job || !job->job.queue) return;
  if (job->job.spec.pod_replacement != reconciler::PodReplacementPolicy::kFailed) return;
  put(*job);
  pool_.queue().add(queue_key(*job));
}

void QueueController::on_queue(const cache::View<CachedQueue>::Change& change) {
  const std::string key = change.latest().key();
  pool_.queue().add(key);
  if (change.before && change.after) return;
  look_at_waiting(key);  // jobs say whether their queue is there
}

void QueueController::on_progress() {
  jobs_check_.on_progress();
  pods_check_.on_progress();
  look_at_unsure();
  look_at_unread();
  for (auto key = behind_.begin(); key != behind_.end();) {
    const auto book = books_.find(*key);
    if (book != books_.end() && !caches_are_new(namespace_of(*key), *book->second)) {
      ++key;
      continue;
    }
    pool_.queue().add(*key);
    key = behind_.erase(key);
  }
}

void QueueController::time_travelled() {
  jobs_check_.time_travelled();
  pods_check_.time_travelled();
  rested_.clear();
  unsure_.clear();
  coming_.clear();
  for (auto& [key, book] : books_) {
    book->time_travelled();
    pool_.queue().add(key);
  }
}

// ---- What the controller of jobs asks.

reconciler::PermitView QueueController::of(const CachedJob& job) const {
  reconciler::PermitView view;
  const std::string key = queue_key(job);
  view.no_queue = is_missing(key);
  if (!has_read_queues(namespace_of(key))) unread_.insert(key);
  const auto book = books_.find(key);
  if (book == books_.end()) return view;
  view.admitted = book->second->is_admitted(job.uid, job.job.status.attempt);
  view.waited = book->second->waited(job.uid, loop_.now());
  return view;
}

void QueueController::ask(const CachedJob& job, bool wants, bool pod_may_come) {
  // It decided on this version, and a newer one may have come meanwhile.
  const JobPtr cached = jobs_.get(job.key());
  if (!cached || cached->uid != job.uid || cached->version != job.version) return;
  const std::shared_ptr<QueueBook> book = book_of(queue_key(job));
  const auto holds = [&] {
    const reconciler::QueuedJob* const found = book->line.find(job.uid);
    return found && found->holds;
  };
  const bool held = holds();
  const bool is_news = !pod_may_come && coming_.none_comes(job, loop_.now());
  if (is_news) put(job);
  book->ask(job, wants, old_pods(job), loop_.now(), now());
  // The job is looked at whenever the place of one of its attempts may have become empty.
  if (job.job.has_pool) put(job);
  if (wants || is_news || held != holds()) pool_.queue().add(queue_key(job));
}

std::vector<QueueCount> QueueController::counts() const {
  std::vector<QueueCount> all;
  for (const auto& [key, book] : books_) {
    if (!membership_.holds(namespace_of(key)) || !queues_.get(key)) continue;
    QueueCount count;
    count.namespace_ = namespace_of(key);
    count.name = key.substr(count.namespace_.size() + 1);
    count.running = book->line.used();
    count.waiting = book->line.waiting();
    const auto since = book->line.oldest_since();
    if (since) count.oldest_wait = std::max(Duration::zero(), now() - *since);
    count.lag = book->lag(loop_.now());
    all.push_back(std::move(count));
  }
  return all;
}

// ---- One reconcile of a queue.

// A book without a queue and without jobs is of no use.
void QueueController::forget_if_empty(const std::string& key) {
  const auto book = books_.find(key);
  if (book != books_.end() && book->second->line.empty()) books_.erase(book);
}

bool QueueController::caches_are_new(const std::string& ns, const QueueBook& book) const {
  return book.tenure.may_count(jobs_check_.shown(ns)) &&
         (!book.counts_pods() || book.tenure.may_count(pods_check_.shown(ns)));
}

std::optional<Duration> QueueController::renew_caches(const std::string& key, QueueBook& book) {
  behind_.insert(key);
  const std::string ns = namespace_of(key);
  const bool is_urgent = book.line.waiting() > 0;
  const Duration patience = is_urgent ? Duration(kOtherEvents) : Duration(kNoHurry);
  const Duration left =
      book.last_write ? *book.last_write + patience - loop_.now() : Duration::zero();
  const auto renew = [&](cache::CacheCheck& check) {
    if (book.tenure.may_count(check.shown(ns))) return;
    if (left <= Duration::zero()) {
      check.compare(ns);
    } else if (is_urgent) {
      check.begin(ns);
    }
  };
  renew(jobs_check_);
  if (book.counts_pods()) renew(pods_check_);
  return left > Duration::zero() ? left : Duration(kNextLook);
}

reconciler::QueueView QueueController::view(const CachedQueue& queue, QueueBook& book,
                                            const std::string& self, std::uint64_t& version) {
  const QueueBook::Current current = book.current(queue);
  version = current.version;
  reconciler::QueueView view;
  view.spec = queue.spec;
  view.status = *current.status;
  view.carried = book.carried();
  view.generation = queue.generation;
  view.self = self;
  if (view.status.holder != self) book.tenure.lost();
  view.claimed = book.tenure.holds(self, queue.uid);
  view.may_count = view.claimed && caches_are_new(queue.namespace_, book);
  view.since_write = book.last_write ? loop_.now() - *book.last_write : Duration::max();
  view.now = now();
  return view;
}

Task<ReconcileResult> QueueController::reconcile(std::string key) {
  const std::string ns = namespace_of(key);
  const auto claim = membership_.claim(ns);
  const auto queue = this->queue(key);
  if (!claim || !queue) {
    if (!queue) forget_if_empty(key);
    if (const auto book = books_.find(key); book != books_.end()) {
      book->second->watch_lag(nullptr, now(), loop_.now());
    }
    co_return ReconcileResult{};
  }
  // The count needs the old pods of the queue's jobs, which have the queue's shard.
  if (!pod_shards_.read(claim->shard, ns)) co_return ReconcileResult{};
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  const std::shared_ptr<QueueBook> book = book_of(key);
  const std::string self = membership_.self() + "/" + std::to_string(claim->tenure);
  const std::optional<Duration> next_coming = look_at_coming(ns);
  std::uint64_t version = 0;
  const reconciler::QueueView seen = view(*queue, *book, self, version);
  book->watch_lag(queue.get(), seen.now, loop_.now());
  reconciler::QueueDecision decision = reconciler::decide_queue(seen, book->line);
  ReconcileResult result;
  result.wake_after = decision.wake_after;
  if (decision.awaits_caches) result.wake_after = renew_caches(key, *book);
  for (const std::optional<Duration>& look : {renew_pods(ns), next_coming}) {
    if (look) result.wake_after = std::min(result.wake_after.value_or(*look), *look);
  }
  if (decision.write) {
    std::uint64_t written = 0;
    auto task = write(queue, version, *decision.write, *claim, written);
    const Status done = co_await task;
    if (!done) {
      const auto cached = this->queue(key);
      book->not_written(cached ? *cached : *queue);
      look_at_admitted(*queue, *book);
      if (done.error().code != ErrorCode::kNotFound) result.error = done.error();
      co_return result;
    }
    if (!book->written(*queue, std::move(*decision.write), written, loop_.now())) {
      pool_.queue().add(key);
      co_return result;
    }
    if (decision.claims) {
      book->tenure.claimed(self, queue->uid, moments_.next());
      pool_.queue().add(key);
    }
    tell_admitted(*queue, *book, decision.admitted);
  }
  look_at_admitted(*queue, *book);
  book->watch_lag(queue.get(), now(), loop_.now());
  co_return result;
}

Task<Status> QueueController::write(QueuePtr queue, std::uint64_t version,
                                    reconciler::QueueStatus status, Ownership::Claim claim,
                                    std::uint64_t& written) {
  kube::CallOptions options;
  const std::string path =
      kube::object_path(reconciler::kJobGroupPath, kQueuePlural, queue->namespace_, queue->name);
  SharedTexts texts = queue->texts.value_or(SharedTexts{});
  if (!queue->texts) {
    auto get = client_.get(path, options);
    const Result<JsonDocument> live = co_await get;
    if (!live) co_return live.error();
    texts = decode_queue_texts(*live);
  }
  if (auto error = membership_.may_write(claim, options)) co_return *error;
  options.answer_with_metadata = true;
  auto put =
      client_.put(path + "/status", queue_status_body(*queue, version, texts, status), options);
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  raise(written, *answer);
  co_return Unit{};
}

void QueueController::tell_admitted(const CachedQueue& queue, QueueBook& book,
                                    const std::vector<std::string>& uids) {
  if (!uids.empty()) book.admitted_some();
  for (const std::string& uid : uids) {
    const reconciler::QueuedJob* const job = book.line.find(uid);
    if (!job) continue;
    telemetry_.admitted(queue.namespace_, queue.name,
                        std::max(Duration::zero(), now() - job->since));
  }
}

// Whoever admitted them: their start is the controller of jobs'.
void QueueController::look_at_admitted(const CachedQueue& queue, QueueBook& book) {
  for (const std::string& name : book.take_admitted()) {
    look_at_(queue.namespace_ + "/" + name, Priority::kFresh);
  }
}

}  // namespace holdfast::controller
