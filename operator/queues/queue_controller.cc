#include "operator/queues/queue_controller.h"

#include <algorithm>
#include <utility>

#include "client/controller/own_writes.h"
#include "reconciler/names.h"
#include "reconciler/queue/admission.h"

namespace holdfast::queues {

QueueController::QueueController(Dependencies deps)
    : loop_(deps.loop),
      client_(deps.client),
      telemetry_(deps.telemetry),
      membership_(deps.membership),
      watched_shards_(deps.watched_shards),
      writer_(client_, membership_),
      look_at_(std::move(deps.look_at)),
      guard_(std::move(deps.guard)),
      proof_(loop_, client_, *deps.jobs, *deps.pods, deps.log, [this] { on_progress(); }),
      old_pods_({loop_, client_.server_clock(), deps.jobs, deps.pods, membership_, watched_shards_,
                 proof_, std::move(deps.has_left)}),
      state_({loop_, client_.server_clock(), deps.jobs, deps.pods, deps.queues, membership_,
              old_pods_, [this](const std::string& key) { wake(key); }, look_at_}),
      pool_({loop_, deps.log}, {.workers = kQueueWorkers, .queue = {}},
            [this](std::string key) { return reconcile(std::move(key)); }) {}

void QueueController::on_progress() {
  proof_.on_progress();
  state_.on_progress();
  for (auto key = behind_.begin(); key != behind_.end();) {
    const QueueBook* const book = state_.find(*key);
    if (book && !proof_.is_new(kube::namespace_of(*key), *book)) {
      ++key;
      continue;
    }
    wake(*key);
    key = behind_.erase(key);
  }
}

void QueueController::time_travelled() {
  proof_.time_travelled();
  state_.time_travelled();
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
  view.may_count = view.claimed && proof_.is_new(queue.namespace_, book);
  view.guard = guard_();
  view.since_write = book.last_write ? loop_.now() - *book.last_write : Duration::max();
  view.now = now();
  return view;
}

Task<controller::ReconcileResult> QueueController::reconcile(std::string key) {
  const std::string ns = kube::namespace_of(key);
  const auto claim = membership_.claim(ns);
  const QueuePtr queue = state_.queue(key);
  if (!claim || !queue) {
    if (!queue) state_.forget_if_empty(key);
    if (QueueBook* const book = state_.find(key)) {
      book->watch_lag(nullptr, now(), loop_.now());
    }
    co_return controller::ReconcileResult{};
  }
  // The count needs the old pods of the queue's jobs, which have the queue's shard.
  if (!watched_shards_.read(claim->shard, ns)) co_return controller::ReconcileResult{};
  const std::shared_ptr<void> in_hand = membership_.keep(claim->shard);
  const std::shared_ptr<QueueBook> book = state_.book_of(key);
  const std::string self = membership_.self() + "/" + std::to_string(claim->tenure);
  const std::optional<Duration> next_freed = state_.give_back(ns);
  std::uint64_t version = 0;
  const reconciler::QueueView seen = view(*queue, *book, self, version);
  const CachedQueue* const may_admit = seen.guard.holds ? nullptr : queue.get();
  book->watch_lag(may_admit, seen.now, loop_.now());
  reconciler::QueueDecision decision = reconciler::decide_queue(seen, book->line);
  controller::ReconcileResult result;
  result.wake_after = decision.wake_after;
  if (decision.awaits_caches) {
    behind_.insert(key);
    result.wake_after = proof_.renew(ns, *book);
  }
  for (const std::optional<Duration>& look : {old_pods_.renew(ns), next_freed}) {
    if (look) result.wake_after = std::min(result.wake_after.value_or(*look), *look);
  }
  if (decision.write) {
    std::uint64_t written = 0;
    auto task = write(queue, version, *decision.write, *claim, written);
    const Result<> done = co_await task;
    if (!done) {
      const QueuePtr cached = state_.queue(key);
      book->not_written(cached ? *cached : *queue);
      look_at_admitted(*queue, *book);
      if (done.error().code != ErrorCode::kNotFound) result.error = done.error();
      co_return result;
    }
    if (!book->written(*queue, std::move(*decision.write), written, loop_.now())) {
      wake(key);
      co_return result;
    }
    if (decision.claims) {
      book->tenure.claimed(self, queue->uid, proof_.now());
      wake(key);
    }
    report_admitted(*queue, *book, decision.admitted);
  }
  look_at_admitted(*queue, *book);
  book->watch_lag(may_admit, now(), loop_.now());
  co_return result;
}

Task<Result<>> QueueController::write(QueuePtr queue, std::uint64_t version,
                                      reconciler::QueueStatus status, controller::Gate::Claim claim,
                                      std::uint64_t& written) {
  const std::string path =
      kube::object_path(reconciler::kJobGroupPath, kQueuePlural, queue->namespace_, queue->name);
  codecs::SharedTexts texts = queue->texts.value_or(codecs::SharedTexts{});
  if (!queue->texts) {
    auto get = client_.get(path);
    const Result<JsonDocument> live = co_await get;
    if (!live) co_return live.error();
    texts = decode_queue_texts(*live);
  }
  auto put = writer_.put(claim, path + "/status", queue_status_body(*queue, version, texts, status),
                         {.answer_with_metadata = true});
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  controller::raise(written, *answer);
  co_return Unit{};
}

void QueueController::report_admitted(const CachedQueue& queue, QueueBook& book,
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
    look_at_(queue.namespace_ + "/" + name, controller::Priority::kFresh);
  }
}

}  // namespace holdfast::queues
