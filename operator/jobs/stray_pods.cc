#include "operator/jobs/stray_pods.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "client/kube/pages.h"
#include "core/json_view.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

constexpr int kPageSize = 500;
// A kind of that name in another group is not ours.
constexpr std::string_view kGroup = "holdfast.dev/";
// Those beyond are the walk's.
constexpr std::size_t kMostSought = 10'000;
// The watch of pods may be a little behind that of jobs.
constexpr std::chrono::seconds kBeforeSeeking{2};

// "<job>-<attempt>-<five characters>", as reconciler::pod_name(). Empty: another form.
std::string job_in_form(const std::string& name) {
  const std::size_t hash = name.rfind('-');
  if (hash == std::string::npos || hash == 0) return "";
  const std::size_t number = name.rfind('-', hash - 1);
  if (number == std::string::npos || number == 0 || number + 1 == hash) return "";
  const bool is_number = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(number) + 1,
                                     name.begin() + static_cast<std::ptrdiff_t>(hash),
                                     [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_number ? name.substr(0, number) : "";
}

}  // namespace

struct StrayPods::Pod : kube::Object {
  bool is_held = false;    // by our finalizer
  bool is_shown = false;   // it has the label that the watch selects
  std::string owner_name;  // the DurableJob that owns it; empty: none

  std::string job_name() const { return owner_name.empty() ? job_in_form(name) : owner_name; }
  bool is_of(const std::string& job_uid) const {
    if (!owner_name.empty()) return owner_uid == job_uid;
    return reconciler::attempt_in_name(job_name(), job_uid, name) > 0;
  }
};

kube::ObjectPtr StrayPods::decode(const JsonView& json) {
  auto pod = std::make_shared<Pod>();
  if (!kube::decode_meta(json, *pod)) return nullptr;
  const JsonView meta = at(json, "metadata");
  for (const JsonView finalizer : at(meta, "finalizers")) {
    if (finalizer == reconciler::kFinalizer) pod->is_held = true;
  }
  pod->is_shown = !string_at(at(meta, "labels"), reconciler::kJobUidLabel).empty();
  for (const JsonView owner : at(meta, "ownerReferences")) {
    const bool is_job = string_at(owner, "kind") == reconciler::kJobKind &&
                        string_at(owner, "apiVersion").starts_with(kGroup);
    if (!is_job || !bool_at(owner, "controller")) continue;
    pod->owner_name = string_at(owner, "name");
  }
  return pod;
}

StrayPods::StrayPods(Dependencies dependencies, std::vector<std::string> namespaces)
    : deps_(std::move(dependencies)), namespaces_(std::move(namespaces)) {
  if (namespaces_.empty()) namespaces_.emplace_back();
}

void StrayPods::stop() {
  stopped_ = true;
  deps_.loop.cancel(std::exchange(timer_, 0));
  deps_.loop.cancel(std::exchange(seek_timer_, 0));
}

void StrayPods::walk_soon() { walk_after(kFirstWalk); }

void StrayPods::walk_after(Duration delay) {
  deps_.loop.cancel(std::exchange(timer_, 0));
  if (stopped_) return;
  timer_ = deps_.loop.call_after(delay, [this] {
    timer_ = 0;
    if (walking_ || !deps_.claim(kWalkersShard)) return;
    walking_ = true;
    spawn(walk());
  });
}

Task<void> StrayPods::walk() {
  for (const std::string& namespace_ : namespaces_) {
    auto task = walk_in(namespace_);
    const Result<> done = co_await task;
    if (!done)
      deps_.log.debug("pods without labels were not all looked at",
                      {{"namespace", namespace_}, {"error", done.error().message}});
    if (stopped_) break;
  }
  walking_ = false;
  walk_after(kBetweenWalks);
}

Task<Result<>> StrayPods::walk_in(std::string namespace_) {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.metadata_only = true;
  kind.decode = decode;
  Jobs jobs;
  kube::Pages pages(kPageSize);
  while (!stopped_ && !pages.done()) {
    auto list = deps_.client.list(kind, namespace_, pages.query());
    const Result<kube::ListPage> page = co_await list;
    if (!page && pages.goes_on_after(page.error())) continue;
    if (!page) co_return page.error();
    for (const kube::ObjectPtr& object : page->items) {
      const auto& pod = static_cast<const Pod&>(*object);
      if (!pod.is_held || pod.is_shown) continue;
      auto task = settle(pod, kWalkersShard, jobs);
      const Result<> done = co_await task;
      if (!done) {
        deps_.log.debug(
            "a pod without labels was not settled",
            {{"pod", pod.namespace_ + "/" + pod.name}, {"error", done.error().message}});
      }
    }
    pages.took(*page);
  }
  co_return Unit{};
}

Task<Result<>> StrayPods::settle(const Pod& pod, int shard, Jobs& jobs) {
  const Key key(pod.namespace_, pod.job_name());
  if (!key.second.empty() && jobs.count(key) == 0) {
    kube::CallOptions options;
    options.answer_with_metadata = true;
    auto get = deps_.client.get(
        kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, key.first, key.second),
        options);
    const Result<JsonDocument> answer = co_await get;
    if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
    jobs[key] = answer ? string_at(at(*answer, "metadata"), "uid") : "";
  }
  const bool has_job = !key.second.empty() && !jobs[key].empty() && pod.is_of(jobs[key]);
  const auto claim = deps_.claim(shard);
  if (!claim) co_return Unit{};
  if (has_job) {
    auto task = deps_.relabel(pod.namespace_, pod.name, pod.uid, key.second, jobs[key], *claim);
    co_return co_await task;
  }
  deps_.log.info("a pod without labels has lost its job, and is released",
                 {{"pod", pod.namespace_ + "/" + pod.name}, {"uid", pod.uid}});
  auto task = deps_.release(pod.namespace_, pod.name, pod.uid, *claim);
  co_return co_await task;
}

void StrayPods::look_for(int shard, const std::string& namespace_, std::vector<std::string> pods) {
  for (std::string& name : pods) {
    if (stopped_ || sought_.size() >= kMostSought) return;
    sought_.push_back({shard, namespace_, std::move(name)});
  }
  if (sought_.empty() || seeking_ || seek_timer_ != 0) return;
  seek_timer_ = deps_.loop.call_after(kBeforeSeeking, [this] {
    seek_timer_ = 0;
    seeking_ = true;
    spawn(seek());
  });
}

Task<void> StrayPods::seek() {
  Jobs jobs;
  while (!sought_.empty() && !stopped_) {
    const Sought sought = std::move(sought_.front());
    sought_.pop_front();
    if (deps_.shows(sought.namespace_, sought.name) || !deps_.claim(sought.shard)) continue;
    kube::CallOptions options;
    options.answer_with_metadata = true;
    auto get = deps_.client.get(
        kube::object_path("/api/v1", "pods", sought.namespace_, sought.name), options);
    const Result<JsonDocument> answer = co_await get;
    if (!answer) continue;  // it is gone, or the walk finds it
    const kube::ObjectPtr pod = decode(*answer);
    if (!pod || !static_cast<const Pod&>(*pod).is_held) continue;
    auto task = settle(static_cast<const Pod&>(*pod), sought.shard, jobs);
    const Result<> done = co_await task;
    if (!done)
      deps_.log.debug("a pod without labels was not settled",
                      {{"pod", sought.name}, {"error", done.error().message}});
  }
  seeking_ = false;
}

}  // namespace holdfast::jobs
