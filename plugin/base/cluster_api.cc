#include "plugin/base/cluster_api.h"

#include <condition_variable>
#include <deque>
#include <random>
#include <utility>

#include "client/cache/informer.h"
#include "client/cache/list_query.h"
#include "client/kube/connection.h"
#include "core/json_view.h"
#include "core/loop_thread.h"
#include "core/thread_annotations.h"

namespace holdfast::plugin {
namespace {

// kubectl's page. A smaller page costs a round trip more.
constexpr int kPageSize = 500;
constexpr std::chrono::seconds kLimit{60};
constexpr std::size_t kMaxDeleted = 1000;

// An object of any kind, whole.
struct WholeObject : kube::Object {
  std::shared_ptr<const Json> json;
};

kube::ObjectPtr decode_whole(const JsonView& view) {
  auto object = std::make_shared<WholeObject>();
  if (!kube::decode_meta(view, *object)) return nullptr;
  Result<Json> json = parse_json(view.text());
  if (!json.ok()) return nullptr;
  object->json = std::make_shared<const Json>(std::move(*json));
  return object;
}

const std::shared_ptr<const Json>& json_of(const kube::ObjectPtr& object) {
  return static_cast<const WholeObject&>(*object).json;
}

kube::Kind kind_of(const Resource& resource, const Selector& selector) {
  kube::Kind kind;
  kind.name = kind.plural = resource.plural;
  kind.group_path = resource.group_path;
  kind.label_selector = selector.labels;
  kind.field_selector = selector.fields;
  kind.decode = decode_whole;
  return kind;
}

Result<Json> as_json(const Result<JsonDocument>& answer) {
  if (!answer.ok()) return answer.error();
  return parse_json(answer->text());
}

kube::CallOptions options(const char* content_type = "application/json") {
  kube::CallOptions options;
  options.timeout = kLimit;
  options.content_type = content_type;
  return options;
}

}  // namespace

struct ClusterApi::Cluster {
  ~Cluster() {
    thread.run([this] { connection.reset(); });
  }

  kube::Client& client() { return connection->client(); }
  // On the loop. It is not started yet.
  std::unique_ptr<cache::Informer> informer(const kube::Kind& kind, const std::string& namespace_) {
    std::vector<std::string> namespaces;
    if (!namespace_.empty()) namespaces.push_back(namespace_);
    return std::make_unique<cache::Informer>(
        cache::Informer::Dependencies{thread.loop(), client(), random, Log()}, kind, namespaces);
  }
  // Mirror::look().
  std::optional<Error> look(const kube::Kind& kind, const std::string& namespace_,
                            Duration at_most) {
    kube::CallOptions limited = options();
    limited.timeout = at_most;
    const auto page = thread.await<Result<kube::ListPage>>(
        [&] { return client().list(kind, namespace_, "limit=1", limited); });
    return page.ok() ? std::nullopt : std::optional(page.error());
  }

  SeededRandom random{std::random_device{}()};
  std::unique_ptr<kube::Connection> connection;  // made and ended on the loop
  LoopThread thread;                             // ends first: no turn of the loop comes after it
};

class ClusterApi::ClusterMirror : public Mirror {
 public:
  ClusterMirror(Cluster& cluster, const kube::Kind& kind, const std::string& namespace_)
      : cluster_(cluster), kind_(kind), namespace_name_(namespace_) {
    cluster_.thread.run([&] {
      informer_ = cluster_.informer(kind, namespace_);
      informer_->on_change([this](const cache::Change& change) {
        if (!change.after && change.before) {
          deleted_.push_back(json_of(change.before));
          if (deleted_.size() > kMaxDeleted) deleted_.pop_front();
        }
        note();
      });
      informer_->on_progress([this] {
        if (informer_->synced() && !std::exchange(was_synced_, true)) note();
      });
      informer_->start();
    });
  }
  ~ClusterMirror() override {
    cluster_.thread.run([this] { informer_.reset(); });
  }

  bool wait(Duration at_most) override {
    const auto limit = std::chrono::steady_clock::now() + at_most;
    MutexLock lock(mutex_);
    while (!is_changed_ && changed_.wait_until(mutex_, limit) == std::cv_status::no_timeout) {
    }
    return std::exchange(is_changed_, false);
  }

  std::vector<std::shared_ptr<const Json>> objects() override {
    return cluster_.thread.run([this] {
      std::vector<std::shared_ptr<const Json>> all;
      informer_->store().for_each(
          [&](const kube::ObjectPtr& object) { all.push_back(json_of(object)); });
      return all;
    });
  }

  std::vector<std::shared_ptr<const Json>> deleted() override {
    return cluster_.thread.run([this] {
      std::vector<std::shared_ptr<const Json>> all(deleted_.begin(), deleted_.end());
      deleted_.clear();
      return all;
    });
  }

  std::string trouble() override {
    return cluster_.thread.run([this] { return informer_->trouble(); });
  }

  std::optional<Error> look(Duration at_most) override {
    return cluster_.look(kind_, namespace_name_, at_most);
  }

 private:
  // A list changes many objects in one turn of the loop. The main thread reads after it.
  void note() {
    {
      MutexLock lock(mutex_);
      is_changed_ = was_synced_;
    }
    changed_.notify_one();
  }

  Cluster& cluster_;
  const kube::Kind kind_;
  const std::string namespace_name_;
  std::unique_ptr<cache::Informer> informer_;        // loop only
  bool was_synced_ = false;                          // loop only
  std::deque<std::shared_ptr<const Json>> deleted_;  // loop only
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_changed_ HOLDFAST_GUARDED_BY(mutex_) = false;
};

class ClusterApi::ClusterWatch : public Watch {
 public:
  ClusterWatch(Cluster& cluster, const kube::Kind& kind, const std::string& namespace_,
               OnChange on_change)
      : cluster_(cluster), kind_(kind), namespace_name_(namespace_) {
    cluster_.thread.run([&] {
      informer_ = cluster_.informer(kind, namespace_);
      informer_->on_change(
          [on_change](const cache::Change& change) { on_change(change.before, change.after); });
      informer_->on_progress([this, on_change = std::move(on_change)] {
        if (informer_->synced() && !std::exchange(was_synced_, true)) on_change(nullptr, nullptr);
      });
      informer_->start();
    });
  }
  ~ClusterWatch() override {
    cluster_.thread.run([this] { informer_.reset(); });
  }

  bool synced() override {
    return cluster_.thread.run([this] { return informer_->synced(); });
  }

  std::string trouble() override {
    return cluster_.thread.run([this] { return informer_->trouble(); });
  }

  std::optional<Error> look(Duration at_most) override {
    return cluster_.look(kind_, namespace_name_, at_most);
  }

 private:
  Cluster& cluster_;
  const kube::Kind kind_;
  const std::string namespace_name_;
  std::unique_ptr<cache::Informer> informer_;  // loop only
  bool was_synced_ = false;                    // loop only
};

ClusterApi::ClusterApi(std::string kubeconfig, std::string context,
                       std::optional<kube::Login> login)
    : kubeconfig_(std::move(kubeconfig)), context_(std::move(context)), login_(std::move(login)) {}

ClusterApi::~ClusterApi() = default;

Result<ClusterApi::Cluster*> ClusterApi::cluster() {
  if (cluster_) return cluster_.get();
  auto made = std::make_unique<Cluster>();
  const Result<> connected = made->thread.run([&]() -> Result<> {
    kube::ConnectOptions options;
    options.kubeconfig = kubeconfig_;
    options.context = context_;
    options.login = login_;
    options.user_agent = "kubectl-holdfast/" HOLDFAST_VERSION;
    // No log: what goes wrong is in the answer's error, which becomes the one line that people
    // read.
    auto connection =
        kube::Connection::connect({made->thread.loop(), made->random, Log(), {}}, options);
    if (!connection.ok()) return connection.error();
    made->connection = std::move(*connection);
    return Unit{};
  });
  if (!connected.ok()) return connected.error();
  cluster_ = std::move(made);
  return cluster_.get();
}

Result<ClusterApi::Cluster*> ClusterApi::logged_in() {
  MutexLock lock(mutex_);
  const Result<Cluster*> cluster = this->cluster();
  if (!cluster.ok()) return cluster.error();
  const Result<> ready =
      (*cluster)->thread.await<Result<>>([&] { return (*cluster)->connection->log_in(); });
  if (!ready.ok()) return ready.error();
  return *cluster;
}

Result<std::string> ClusterApi::context_namespace() {
  MutexLock lock(mutex_);
  const Result<Cluster*> cluster = this->cluster();
  if (!cluster.ok()) return cluster.error();
  return (*cluster)->connection->context_namespace();
}

std::string ClusterApi::server() {
  MutexLock lock(mutex_);
  const Result<Cluster*> cluster = this->cluster();
  return cluster.ok() ? (*cluster)->connection->server() : "";
}

Result<Json> ClusterApi::get(const Resource& resource, const std::string& namespace_,
                             const std::string& name) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  return as_json((*cluster)->thread.await<Result<JsonDocument>>([&] {
    return (*cluster)->client().get(
        kube::object_path(resource.group_path, resource.plural, namespace_, name), options());
  }));
}

Result<std::vector<Json>> ClusterApi::list(const Resource& resource, const std::string& namespace_,
                                           const Selector& selector) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  const kube::Kind kind = kind_of(resource, selector);
  std::vector<Json> all;
  std::string token;
  do {
    const std::string query = cache::list_query(cache::Freshness::kConsistent, 0, token, kPageSize);
    const auto page = (*cluster)->thread.await<Result<kube::ListPage>>(
        [&] { return (*cluster)->client().list(kind, namespace_, query, options()); });
    if (!page.ok()) return page.error();
    for (const kube::ObjectPtr& item : page->items) all.push_back(*json_of(item));
    token = page->continue_token;
  } while (!token.empty());
  return all;
}

Result<std::vector<kube::ObjectPtr>> ClusterApi::first_page(const Resource& resource,
                                                            const std::string& namespace_,
                                                            Watch::Decode decode) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  kube::Kind kind = kind_of(resource, {});
  kind.decode = std::move(decode);
  const std::string query = "limit=" + std::to_string(kPageSize);
  auto page = (*cluster)->thread.await<Result<kube::ListPage>>(
      [&] { return (*cluster)->client().list(kind, namespace_, query, options()); });
  if (!page.ok()) return page.error();
  return std::move(page->items);
}

Result<Json> ClusterApi::create(const Resource& resource, const std::string& namespace_,
                                const Json& object, bool dry_run) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  std::string path = kube::collection_path(resource.group_path, resource.plural, namespace_);
  path += "?fieldManager=kubectl-holdfast&fieldValidation=Strict";
  if (dry_run) path += "&dryRun=All";
  return as_json((*cluster)->thread.await<Result<JsonDocument>>(
      [&] { return (*cluster)->client().post(path, object.dump(), options()); }));
}

Result<Json> ClusterApi::patch(const Resource& resource, const std::string& namespace_,
                               const std::string& name, const Json& merge_patch) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  const std::string path =
      kube::object_path(resource.group_path, resource.plural, namespace_, name) +
      "?fieldManager=kubectl-holdfast";
  return as_json((*cluster)->thread.await<Result<JsonDocument>>([&] {
    return (*cluster)->client().patch(path, merge_patch.dump(),
                                      options("application/merge-patch+json"));
  }));
}

Result<std::string> ClusterApi::text(const std::string& path) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  return (*cluster)->thread.await<Result<std::string>>(
      [&] { return (*cluster)->client().get_text(path, options()); });
}

Result<std::unique_ptr<Mirror>> ClusterApi::mirror(const Resource& resource,
                                                   const std::string& namespace_,
                                                   const Selector& selector) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  return std::unique_ptr<Mirror>(
      std::make_unique<ClusterMirror>(**cluster, kind_of(resource, selector), namespace_));
}

Result<std::unique_ptr<Watch>> ClusterApi::watch(const Resource& resource,
                                                 const std::string& namespace_,
                                                 Watch::Decode decode, Watch::OnChange on_change) {
  const Result<Cluster*> cluster = logged_in();
  if (!cluster.ok()) return cluster.error();
  kube::Kind kind = kind_of(resource, {});
  kind.decode = std::move(decode);
  return std::unique_ptr<Watch>(
      std::make_unique<ClusterWatch>(**cluster, kind, namespace_, std::move(on_change)));
}

void ClusterApi::end_login() {
  if (!cluster_) return;
  cluster_->thread.run([this] { cluster_->connection->end_login(); });
}

Time ClusterApi::now() {
  if (cluster_) {
    const auto known = cluster_->thread.run([this]() -> std::optional<Time> {
      const ServerClock& clock = cluster_->client().server_clock();
      if (!clock.known()) return std::nullopt;
      return clock.now(cluster_->thread.loop().now());
    });
    if (known) return *known;
  }
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

}  // namespace holdfast::plugin
