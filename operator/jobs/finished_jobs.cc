#include "operator/jobs/finished_jobs.h"

#include <algorithm>
#include <utility>

#include "client/kube/packed.h"
#include "client/kube/percent_encode.h"
#include "operator/codecs/at_rest.h"

namespace holdfast::jobs {
namespace {

// Until the walk after the next one.
constexpr std::chrono::minutes kHorizon{25};

kube::Kind settled_kind() {
  kube::Kind kind = codecs::job_kind();
  kind.field_selector = "status.settled=true";
  return kind;
}

}  // namespace

FinishedJobs::FinishedJobs(Dependencies dependencies, std::vector<std::string> namespaces)
    : deps_(std::move(dependencies)),
      left_(deps_.loop, deps_.client, deps_.log, deps_.caches, deps_.memories),
      namespaces_(std::move(namespaces)) {
  if (namespaces_.empty()) namespaces_.emplace_back();
}

void FinishedJobs::begin() {
  begun_ = true;
  walk_after(kFirstWalk);
}

void FinishedJobs::gained() {
  if (begun_ && !walking_) walk_after(kFirstWalk);
}

void FinishedJobs::lost(int shard) {
  left_.lost(shard);
  counts_.erase(shard);
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
  deps_.loop.cancel(std::exchange(walk_timer_, 0));
  deps_.loop.cancel(std::exchange(due_timer_, 0));
}

void FinishedJobs::at_rest(const codecs::CachedJob& job) {
  // Otherwise everything is watched.
  if (!deps_.caches.jobs()->is_kept(job.key())) return;
  left_.drop(job.key());
  ++counts_[deps_.caches.shard_of(job)][job.namespace_][to_string(job.job.status.phase)];
  see(job);
}

void FinishedJobs::walk_after(Duration delay) {
  deps_.loop.cancel(std::exchange(walk_timer_, 0));
  if (stopped_) return;
  walk_timer_ = deps_.loop.call_after(delay, [this] {
    walk_timer_ = 0;
    walking_ = true;
    spawn(walk_on());
  });
}

Task<void> FinishedJobs::walk_on() {
  const std::string& namespace_ = namespaces_[place_];
  std::string query = "limit=" + std::to_string(kPage);
  if (!token_.empty()) query += "&continue=" + kube::percent_encode(token_);
  auto list = deps_.client.list(settled_kind(), namespace_, query);
  const Result<kube::ListPage> page = co_await list;
  if (stopped_) co_return;
  if (!page) {
    deps_.log.debug("the finished jobs were not all looked at",
                    {{"namespace", namespace_}, {"error", page.error().message}});
    co_return walk_ends(/*has_all=*/false);
  }
  for (const kube::ObjectPtr& object : page->items) {
    const auto job = kube::as<codecs::CachedJob>(kube::whole(object));
    if (!deps_.caches.holds_shard_of(*job)) continue;
    ++walked_[deps_.caches.shard_of(*job)][job->namespace_][to_string(job->job.status.phase)];
    see(*job);
  }
  token_ = page->continue_token;
  if (token_.empty() && ++place_ == namespaces_.size()) co_return walk_ends(/*has_all=*/true);
  walk_after(kPause);
}

void FinishedJobs::walk_ends(bool has_all) {
  if (has_all) counts_ = std::move(walked_);
  walking_ = false;
  walked_.clear();
  token_.clear();
  place_ = 0;
  walk_after(kBetweenWalks);
}

void FinishedJobs::see(const codecs::CachedJob& job) {
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
    for (auto entry = due_.begin(); entry != end; ++entry) left_.look_for(entry->second);
    due_.erase(due_.begin(), end);
    arm();
  });
}

}  // namespace holdfast::jobs
