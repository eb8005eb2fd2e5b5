#include "client/cache/reach.h"

#include <set>
#include <utility>
#include <vector>

namespace holdfast::cache {
namespace {

// Other events of the namespace usually bring the version sooner.
constexpr std::chrono::milliseconds kOtherEvents{200};
// Before the next step of a comparison: the watch may bring what differs, and a request may fail.
constexpr std::chrono::milliseconds kCompareAgain{200};
constexpr std::size_t kMostSeen = 200'000;

}  // namespace

Reach::Reach(Loop& loop, kube::Client& client, Informer& cache, Log log, Wake wake)
    : loop_(loop),
      cache_(cache),
      wake_(std::move(wake)),
      check_(client, cache, moments_, std::move(log), [this] { look(); }) {}

Moment Reach::since(const std::string& uid, std::uint64_t version) {
  if (seen_.size() >= kMostSeen && seen_.count(uid) == 0) seen_.clear();
  Seen& seen = seen_[uid];
  if (seen.moment == 0 || seen.version != version) seen = {version, moments_.next()};
  return seen.moment;
}

bool Reach::has(const std::string& ns, Moment moment, const std::string& key,
                std::uint64_t version) {
  if (has(ns, moment) && cache_.version(ns) >= version) return true;
  Waiting& waiting = waiting_.try_emplace(key, Waiting{0, 0, loop_.now()}).first->second;
  waiting.moment = moment;
  waiting.version = version;
  if (timer_ == 0 && !stopped_) {
    timer_ = loop_.call_after(kOtherEvents, [this] { compare(); });
  }
  return false;
}

void Reach::on_progress() {
  check_.on_progress();
  look();
}

void Reach::look() {
  std::vector<std::string> reached;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const std::string ns = kube::namespace_of(one->first);
    if (!has(ns, one->second.moment) || cache_.version(ns) < one->second.version) {
      ++one;
      continue;
    }
    reached.push_back(one->first);
    one = waiting_.erase(one);
  }
  for (const std::string& key : reached) wake_(key);
}

void Reach::compare() {
  timer_ = 0;
  std::set<std::string> namespaces;
  if (waiting_.empty() || stopped_) return;
  for (const auto& [key, waiting] : waiting_) {
    if (loop_.now() - waiting.since >= kOtherEvents) namespaces.insert(kube::namespace_of(key));
  }
  timer_ = loop_.call_after(kCompareAgain, [this] { compare(); });
  for (const std::string& ns : namespaces) check_.compare(ns);
}

void Reach::time_travelled() {
  check_.time_travelled();
  seen_.clear();
  for (auto& [key, waiting] : waiting_) waiting.moment = waiting.version = 0;
  look();
}

void Reach::stop() {
  stopped_ = true;
  loop_.cancel(std::exchange(timer_, 0));
}

}  // namespace holdfast::cache
