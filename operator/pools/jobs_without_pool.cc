#include "operator/pools/jobs_without_pool.h"

#include <utility>
#include <vector>

namespace holdfast::pools {
namespace {

// The first list of a kind may fail some times.
constexpr std::chrono::seconds kReadingTime{60};

}  // namespace

bool JobsWithoutPool::has_read(const std::string& ns) const {
  return caches_.pools->version(ns) > 0 || loop_.now() - began_ >= kReadingTime;
}

// Only of jobs in the cache: its change ends the entry.
void JobsWithoutPool::add(const codecs::CachedJob& job, const std::string& pool_key,
                          bool was_read) {
  const auto newest = caches_.jobs.get(job.key());
  if (!newest || newest->uid != job.uid || pool_key_of(*newest) != pool_key) return;
  Jobs& jobs = jobs_[pool_key];
  jobs.was_read = was_read;
  jobs.keys.insert(job.key());
}

void JobsWithoutPool::erase(const codecs::CachedJob& job, const std::string& pool_key) {
  const auto found = jobs_.find(pool_key);
  if (found == jobs_.end()) return;
  found->second.keys.erase(job.key());
  if (found->second.keys.empty()) jobs_.erase(found);
}

void JobsWithoutPool::look_at(const std::string& pool_key) {
  const auto found = jobs_.find(pool_key);
  if (found == jobs_.end()) return;
  const std::set<std::string> jobs = std::move(found->second.keys);
  jobs_.erase(found);
  for (const std::string& job : jobs) looks_.look_at_job(job, controller::Priority::kLow);
}

void JobsWithoutPool::on_progress() {
  std::vector<std::string> read;
  for (const auto& [key, jobs] : jobs_) {
    if (!jobs.was_read && has_read(kube::namespace_of(key))) read.push_back(key);
  }
  for (const std::string& key : read) look_at(key);
}

}  // namespace holdfast::pools
