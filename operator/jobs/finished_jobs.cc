#include "operator/jobs/finished_jobs.h"

#include <algorithm>
#include <utility>

#include "client/kube/packed.h"
#include "operator/codecs/at_rest.h"
#include "operator/jobs/gone_namespace.h"

namespace holdfast::jobs {
namespace {

// Until the walk after the next one.
constexpr std::chrono::minutes kHorizon{25};

}  // namespace

FinishedJobs::FinishedJobs(Dependencies dependencies, std::vector<std::string> namespaces)
    : deps_(std::move(dependencies)),
      left_(
          deps_.loop, deps_.client, deps_.log, deps_.caches, deps_.memories, !namespaces.empty(),
          [this](const codecs::CachedJob& job) { uncount(job); }, deps_.look),
      settle_line_(deps_.loop, deps_.look),
      namespaces_(std::move(namespaces)) {
  if (namespaces_.empty()) namespaces_.emplace_back();
}

void FinishedJobs::begin() {
  begun_ = walks_soon_ = true;
  walk_after(kFirstWalk);
}

void FinishedJobs::gained() {
  // Shards that come and go put no walk off.
  if (!begun_ || walks_soon_) return;
  walks_soon_ = true;
  if (!walk_) walk_after(kFirstWalk);
}

void FinishedJobs::lost(int shard) {
  left_.lost(shard);
  counts_.erase(shard);
  if (walk_) walk_->found.erase(shard);
}

std::map<std::string, JobCensus::Phases> FinishedJobs::counts() const {
  std::map<std::string, JobCensus::Phases> sum;
  for (const auto& [shard, namespaces] : counts_) {
    for (const auto& [namespace_, phases] : namespaces) {
      for (const auto& [phase, count] : phases) sum[namespace_][phase] += count;
    }
  }
  return sum;
}

void FinishedJobs::stop() {
  stopped_ = true;
  left_.stop();
  settle_line_.stop();
  deps_.loop.cancel(std::exchange(walk_timer_, 0));
  deps_.loop.cancel(std::exchange(due_timer_, 0));
}

void FinishedJobs::at_rest(const codecs::CachedJob& job) {
  // Otherwise everything is watched.
  if (!deps_.caches.jobs()->is_kept(job.key())) return;
  resting_[job.key()] = job.uid;
  left_.drop(job.key());
  ++counts_[deps_.caches.shard_of(job)][job.namespace_][to_string(job.job.status.phase)];
  see(job);
}

std::optional<std::string> FinishedJobs::take_left(const std::string& key) {
  const auto left = resting_.extract(key);
  return left ? std::optional(left.mapped()) : std::nullopt;
}

// It is back in the cache, where the census counts it.
void FinishedJobs::uncount(const codecs::CachedJob& job) {
  const auto shard = counts_.find(deps_.caches.shard_of(job));
  if (shard == counts_.end()) return;
  std::size_t& count = shard->second[job.namespace_][to_string(job.job.status.phase)];
  if (count > 0) --count;
}

// A job that ended just now waits for nobody: their number is bounded by the jobs that end.
reconciler::Settling FinishedJobs::settling(const codecs::CachedJob& job) {
  const auto& ended = job.job.status.completion_time;
  if (deps_.neighbours.mirror(job) == Mirror::kNothing) return reconciler::Settling::kNotYet;
  if (!ended) return reconciler::Settling::kWithAWrite;
  // The API server may not know the field. A write for it alone would be one each time.
  if (deps_.caches.jobs()->is_unselected()) return reconciler::Settling::kWithAWrite;
  const bool has_turn = settle_line_.take_turn(job.key());
  return has_turn || now() - *ended < kBetweenWalks ? reconciler::Settling::kNow
                                                    : reconciler::Settling::kWithAWrite;
}

void FinishedJobs::walk_after(Duration delay) {
  deps_.loop.cancel(std::exchange(walk_timer_, 0));
  if (stopped_) return;
  walk_timer_ = deps_.loop.call_after(delay, [this] {
    walk_timer_ = 0;
    if (!walk_) {
      walk_.emplace(Walk{deps_.caches.selects_held("status.settled=true").fields});
      walks_soon_ = false;
    }
    spawn(walk_on());
  });
}

Task<void> FinishedJobs::walk_on() {
  // Everything is watched, and the server would refuse the selector.
  if (deps_.caches.jobs()->is_unselected()) co_return walk_ends(kWhileUnselected);
  const std::string& namespace_ = namespaces_[walk_->place];
  kube::Kind settled = codecs::job_kind();
  settled.field_selector = walk_->selector;
  auto list = deps_.client.list(settled, namespace_, walk_->pages.query());
  const Result<kube::ListPage> page = co_await list;
  if (stopped_) co_return;
  if (!page) {
    deps_.log.debug("a page of the finished jobs was not read",
                    {{"namespace", namespace_}, {"error", page.error().message}});
    const ErrorCode code = page.error().code;
    const bool is_refused = code == ErrorCode::kForbidden || code == ErrorCode::kNotFound;
    if (is_refused && !namespace_.empty()) {
      auto ask = is_of_gone_namespace(deps_.client, page.error(), namespace_);
      const bool is_gone = co_await ask;
      if (stopped_) co_return;
      co_return skip(namespace_, is_gone);
    }
    co_return walk_after(walk_->pages.goes_on_after(page.error()) ? Duration(kPause) : kRetry);
  }
  for (const kube::ObjectPtr& object : page->items) {
    const auto job = kube::as<codecs::CachedJob>(kube::whole(object));
    // The census counts those that the cache has.
    if (!deps_.caches.holds_shard_of(*job) || deps_.caches.job(job->key())) continue;
    ++walk_->found[deps_.caches.shard_of(*job)][job->namespace_][to_string(job->job.status.phase)];
    see(*job);
  }
  walk_->pages.took(*page);
  if (walk_->pages.done()) co_return next_namespace();
  walk_after(kPause);
}

void FinishedJobs::next_namespace() {
  walk_->pages = kube::Pages(kPage);
  if (++walk_->place == namespaces_.size()) return walk_ends(kBetweenWalks);
  walk_after(kPause);
}

// The namespace is gone, or only the right to read it: then its jobs wait, and count as before. Those
// of the others do not wait.
void FinishedJobs::skip(const std::string& namespace_, bool is_gone) {
  for (auto& [shard, found] : walk_->found) found.erase(namespace_);
  for (const auto& [shard, namespaces] : counts_) {
    const auto before = namespaces.find(namespace_);
    const bool counts = !is_gone && before != namespaces.end();
    if (counts) walk_->found[shard][namespace_] = before->second;
  }
  next_namespace();
}

void FinishedJobs::walk_ends(Duration next) {
  counts_ = std::move(walk_->found);
  walk_.reset();
  walk_after(walks_soon_ ? Duration(kFirstWalk) : next);
}

void FinishedJobs::see(const codecs::CachedJob& job) {
  const reconciler::Status& status = job.job.status;
  // A deletion is an edit, too. At rest there is nothing to do for it.
  const bool is_edited = !job.job.deleting && job.job.generation != status.observed_generation;
  // Somebody settled it by hand, too early.
  const bool is_unfinished =
      !is_terminal(status.phase) || !status.outbox.empty() || job.job.holds_outbox;
  if (is_edited || is_unfinished) left_.look_for(job.key());
  const auto& ttl = job.job.spec.ttl_after_finished;
  const auto& ended = job.job.status.completion_time;
  if (!ttl || !ended || job.job.deleting || deps_.caches.job(job.key())) return;
  const Time expiry = *ended + *ttl;
  if (expiry - now() > kHorizon || due_.size() >= kMostTimers) return;
  const auto [first, last] = due_.equal_range(expiry);
  const bool is_known =
      std::any_of(first, last, [&](const auto& entry) { return entry.second == job.key(); });
  if (is_known) return;
  due_.emplace(expiry, job.key());
  arm();
}

void FinishedJobs::arm() {
  deps_.loop.cancel(std::exchange(due_timer_, 0));
  if (stopped_ || due_.empty()) return;
  const Duration left = std::max<Duration>(due_.begin()->first - now(), Duration::zero());
  due_timer_ = deps_.loop.call_after(left, [this] {
    due_timer_ = 0;
    const auto end = due_.upper_bound(now());
    for (auto entry = due_.begin(); entry != end; ++entry) {
      // A job of the same name may have come since, and be watched.
      const std::string& key = entry->second;
      if (deps_.caches.job(key) && !deps_.caches.jobs()->is_kept(key)) {
        deps_.look(key);
      } else {
        left_.look_for(key);
      }
    }
    due_.erase(due_.begin(), end);
    arm();
  });
}

}  // namespace holdfast::jobs
