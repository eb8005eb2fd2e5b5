#include "client/cache/cache_check.h"

#include <algorithm>
#include <unordered_map>

#include "client/cache/list_query.h"

namespace holdfast::cache {
namespace {

std::string selector_of(const kube::Kind& kind) {
  return kind.label_selector + "&" + kind.field_selector;
}

// Of one answer. The metadata of a job takes about 1 KB.
constexpr int kPage = 5000;
// Whoever waits calls compare() some times in a second.
constexpr int kSkippedAfterFailure = 3;

}  // namespace

CacheCheck::CacheCheck(kube::Client& client, Informer& cache, Moments& moments, Log log,
                       std::function<void()> compared)
    : client_(client),
      cache_(cache),
      moments_(moments),
      log_(std::move(log)),
      compared_(std::move(compared)) {}

Moment CacheCheck::shown(const std::string& namespace_) const {
  const auto found = namespaces_.find(namespace_);
  return found == namespaces_.end() ? 0 : found->second.shown;
}

void CacheCheck::begin(const std::string& namespace_) {
  const auto found = namespaces_.find(namespace_);
  if (found == namespaces_.end() || !found->second.mark) compare(namespace_);
}

void CacheCheck::compare(const std::string& namespace_) {
  State& state = namespaces_[namespace_];
  if (state.asks || state.difference) return;
  if (state.failures > 0 && ++state.skipped < kSkippedAfterFailure) return;
  state.skipped = 0;
  state.asks = true;
  spawn(state.mark ? list(namespace_) : ask(namespace_));
}

kube::Kind CacheCheck::bare_kind() const {
  kube::Kind kind = cache_.kind();
  kind.metadata_only = true;
  kind.protobuf = nullptr;
  kind.decode = kube::decode_bare;
  return kind;
}

void CacheCheck::failed(const std::string& ns, const std::string& why) {
  log_.debug("a cache could not be compared",
             {{"kind", cache_.kind().name}, {"namespace", ns}, {"error", why}});
  State& state = namespaces_[ns];
  state.asks = false;
  ++state.failures;
}

// One object of any labels: the API server need not search for it.
Task<void> CacheCheck::ask(std::string ns) {
  const int age = age_;
  const Moment begun = moments_.next();
  kube::Kind kind = bare_kind();
  kind.label_selector.clear();
  kind.field_selector.clear();
  auto page = client_.list(kind, ns, list_query(Freshness::kConsistent, 0, "", 1));
  const Result<kube::ListPage> answer = co_await page;
  if (age != age_) co_return;
  if (!answer) co_return failed(ns, answer.error().message);
  State& state = namespaces_[ns];
  state.asks = false;
  state.failures = 0;
  state.mark = Mark{begun, answer->version};
  settle(ns, state);
  compared_();
}

Task<void> CacheCheck::list(std::string ns) {
  std::vector<kube::ObjectPtr> listed;
  std::uint64_t version = 0;
  std::string token;
  const int age = age_;
  const Moment begun = moments_.next();
  // The cache may get another selector meanwhile. Then list and cache have different objects.
  const kube::Kind kind = bare_kind();
  do {
    auto page = client_.list(kind, ns, list_query(Freshness::kConsistent, 0, token, kPage));
    const Result<kube::ListPage> answer = co_await page;
    if (age != age_) co_return;
    if (!answer) co_return failed(ns, answer.error().message);
    if (selector_of(kind) != selector_of(cache_.kind())) {
      co_return failed(ns, "it has another selector by now");
    }
    if (version == 0) version = answer->version;
    listed.insert(listed.end(), answer->items.begin(), answer->items.end());
    token = answer->continue_token;
  } while (!token.empty());
  State& state = namespaces_[ns];
  state.asks = false;
  state.failures = 0;
  state.difference = differs(ns, version, listed);
  state.difference->begun = begun;
  settle(ns, state);
  compared_();
}

CacheCheck::Difference CacheCheck::differs(const std::string& ns, std::uint64_t version,
                                           const std::vector<kube::ObjectPtr>& listed) const {
  Difference difference;
  difference.selector = selector_of(cache_.kind());
  difference.listed = version;
  std::unordered_map<std::string, std::uint64_t> there;  // by UID
  for (const kube::ObjectPtr& object : listed) {
    there[object->uid] = object->version;
    const kube::ObjectPtr cached = cache_.store().get(object->key());
    const bool has = cached && cached->uid == object->uid && cached->version >= object->version;
    if (!has) difference.reach = std::max(difference.reach, object->version);
  }
  cache_.store().for_each([&](const kube::ObjectPtr& object) {
    // Nobody expects those that are kept in a list.
    if (object->namespace_ != ns || cache_.is_kept(object->key())) return;
    if (there.count(object->uid) == 0) difference.go.push_back(object);
  });
  return difference;
}

void CacheCheck::settle(const std::string& ns, State& state) {
  const std::uint64_t version = cache_.version(ns);
  if (state.mark && version >= state.mark->version) {
    state.shown = std::max(state.shown, state.mark->begun);
    state.mark.reset();
  }
  if (!state.difference) return;
  const Difference& difference = *state.difference;
  if (difference.selector != selector_of(cache_.kind())) return state.difference.reset();
  const bool has_all =
      version >= difference.listed ||
      (version >= difference.reach &&
       std::none_of(difference.go.begin(), difference.go.end(), [&](const auto& object) {
         const kube::ObjectPtr cached = cache_.store().get(object->key());
         return cached && cached->uid == object->uid;
       }));
  if (!has_all) return;
  state.shown = std::max(state.shown, difference.begun);
  state.difference.reset();
  state.mark.reset();  // it was older
}

void CacheCheck::on_progress() {
  for (auto& [ns, state] : namespaces_) settle(ns, state);
}

}  // namespace holdfast::cache
