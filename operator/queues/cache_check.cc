#include "operator/queues/cache_check.h"

#include <algorithm>
#include <unordered_map>

#include "client/cache/list_query.h"

namespace holdfast::controller {
namespace {

// Of one answer. The metadata of a job takes about 1 KB.
constexpr int kPage = 5000;

}  // namespace

CacheCheck::CacheCheck(kube::Client& client, cache::Informer& cache, Log log,
                       std::function<void()> compared)
    : client_(client), cache_(cache), log_(std::move(log)), compared_(std::move(compared)) {}

std::uint64_t CacheCheck::shown(const std::string& namespace_) const {
  const auto found = namespaces_.find(namespace_);
  const std::uint64_t compared = found == namespaces_.end() ? 0 : found->second.compared;
  return std::max(cache_.version(namespace_), compared);
}

void CacheCheck::compare(const std::string& namespace_) {
  State& state = namespaces_[namespace_];
  if (state.lists || state.difference) return;
  state.lists = true;
  spawn(list(namespace_));
}

Task<void> CacheCheck::list(std::string ns) {
  std::vector<kube::ObjectPtr> listed;
  std::uint64_t version = 0;
  std::string token;
  const int age = age_;
  // The cache may get another selector meanwhile. Then list and cache have different objects.
  kube::Kind kind = cache_.kind();
  kind.metadata_only = true;
  kind.protobuf = nullptr;
  kind.decode = kube::decode_bare;
  do {
    auto page =
        client_.list(kind, ns, cache::list_query(cache::Freshness::kConsistent, 0, token, kPage));
    const Result<kube::ListPage> answer = co_await page;
    if (age != age_) co_return;
    const bool is_same = kind.label_selector == cache_.kind().label_selector;
    if (!answer || !is_same) {
      log_.debug("a cache could not be compared",
                 {{"kind", kind.name},
                  {"namespace", ns},
                  {"error", answer ? "it has another selector by now" : answer.error().message}});
      namespaces_[ns].lists = false;
      co_return;
    }
    if (version == 0) version = answer->version;
    listed.insert(listed.end(), answer->items.begin(), answer->items.end());
    token = answer->continue_token;
  } while (!token.empty());
  State& state = namespaces_[ns];
  state.lists = false;
  state.difference = differs(ns, version, listed);
  settle(ns, state);
  compared_();
}

CacheCheck::Difference CacheCheck::differs(const std::string& ns, std::uint64_t version,
                                           const std::vector<kube::ObjectPtr>& listed) const {
  Difference difference;
  difference.selector = cache_.kind().label_selector;
  difference.listed = version;
  std::unordered_map<std::string, std::uint64_t> there;  // by UID
  for (const kube::ObjectPtr& object : listed) {
    there[object->uid] = object->version;
    const kube::ObjectPtr cached = cache_.store().get(object->key());
    const bool has = cached && cached->uid == object->uid && cached->version >= object->version;
    if (!has) difference.reach = std::max(difference.reach, object->version);
  }
  cache_.store().for_each([&](const kube::ObjectPtr& object) {
    if (object->namespace_ == ns && there.count(object->uid) == 0) difference.go.push_back(object);
  });
  return difference;
}

void CacheCheck::settle(const std::string& ns, State& state) {
  if (!state.difference) return;
  const Difference& difference = *state.difference;
  if (difference.selector != cache_.kind().label_selector) return state.difference.reset();
  const std::uint64_t version = cache_.version(ns);
  const bool has_all =
      version >= difference.listed ||
      (version >= difference.reach &&
       std::none_of(difference.go.begin(), difference.go.end(), [&](const auto& object) {
         const kube::ObjectPtr cached = cache_.store().get(object->key());
         return cached && cached->uid == object->uid;
       }));
  if (!has_all) return;
  state.compared = std::max(state.compared, difference.listed);
  state.difference.reset();
}

void CacheCheck::on_progress() {
  for (auto& [ns, state] : namespaces_) settle(ns, state);
}

}  // namespace holdfast::controller
