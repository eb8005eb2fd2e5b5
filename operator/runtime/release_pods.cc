#include "operator/runtime/release_pods.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "client/kube/connection.h"
#include "client/kube/percent_encode.h"
#include "core/random.h"
#include "core/real_loop.h"
#include "operator/lane/fail_batch_jobs.h"
#include "operator/membership/lease_codec.h"
#include "operator/runtime/signals.h"
#include "operator/runtime/version.h"
#include "reconciler/names.h"

namespace holdfast::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kPoll{1};
// A clean stop takes 30 s at most. A dead replica is known to be dead after its Lease's duration.
// So the limit is this, or the longest duration + 1 min, if that is longer. The chart's hook has 40
// s more, for lists and patches.
constexpr minutes kStopLimit{4};
constexpr minutes kLeaseMargin{1};
constexpr int kPageSize = 500;
constexpr int kExitFailed = 1;
constexpr seconds kSignalLimit{5};
// The most passes: if somebody creates pods with our finalizer all the time, this must end.
constexpr int kMostPasses = 20;

Task<void> pause(Loop& loop, Duration duration) {
  Callback<Unit> passed([&loop, duration](Callback<Unit>::Done done) {
    loop.call_after(duration, [done = std::move(done)] { done(Unit{}); });
  });
  co_await passed;
}

Task<Status> scale_down(kube::Client& client, std::string namespace_, std::string name) {
  kube::CallOptions options;
  options.content_type = "application/merge-patch+json";
  const std::string path =
      kube::object_path("/apis/apps/v1", "deployments", namespace_, name) + "/scale";
  auto patch = client.patch(path, R"({"spec":{"replicas":0}})", options);
  const Result<JsonDocument> answer = co_await patch;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return Unit{};
}

Task<Result<std::vector<kube::ObjectPtr>>> members(kube::Client& client, std::string namespace_) {
  const kube::Kind kind =
      controller::lease_kind(std::string(controller::kLeaseLabel) + "=" + controller::kMemberLease);
  auto list = client.list(kind, namespace_, "limit=" + std::to_string(kPageSize));
  const Result<kube::ListPage> page = co_await list;
  if (!page) co_return page.error();
  co_return page->items;
}

// The last change of a member Lease, by its UID.
struct Seen {
  std::uint64_t version = 0;
  SteadyTime since{};
};
using Members = std::map<std::string, Seen>;

// The remaining member Leases are those of dead replicas.
Task<Result<Members>> await_replicas_gone(kube::Client& client, std::string namespace_, Log log) {
  Loop& loop = client.loop();
  const SteadyTime began = loop.now();
  Duration limit = kStopLimit;
  Members seen;
  std::string told;
  while (true) {
    auto list = members(client, namespace_);
    const Result<std::vector<kube::ObjectPtr>> leases = co_await list;
    if (!leases) co_return leases.error();
    std::string alive;
    for (const kube::ObjectPtr& object : *leases) {
      const auto& lease = static_cast<const controller::CachedLease&>(*object);
      Seen& last = seen[lease.uid];
      if (last.version != lease.version) last = {lease.version, loop.now()};
      limit = std::max<Duration>(limit, lease.duration + kLeaseMargin);
      if (loop.now() - last.since <= lease.duration) alive = lease.holder;
    }
    if (alive.empty()) co_return seen;
    if (told != alive) log.info("waiting until no replica is alive", {{"replica", alive}});
    told = alive;
    if (loop.now() - began > limit) {
      co_return make_error(ErrorCode::kInvalid,
                           "replica " + alive + " is still alive after " + human_duration(limit) +
                               ": stop it, or name its Deployment by --deployment");
    }
    auto wait = pause(loop, kPoll);
    co_await wait;
  }
}

// An autoscaler or a GitOps tool may have started a replica meanwhile, and nobody would release its
// pods.
Task<Status> none_came_back(kube::Client& client, std::string namespace_, Members dead) {
  auto list = members(client, namespace_);
  const Result<std::vector<kube::ObjectPtr>> leases = co_await list;
  if (!leases) co_return leases.error();
  for (const kube::ObjectPtr& object : *leases) {
    const auto& lease = static_cast<const controller::CachedLease&>(*object);
    const auto found = dead.find(lease.uid);
    if (found != dead.end() && found->second.version == lease.version) continue;
    co_return make_error(ErrorCode::kConflict,
                         "replica " + lease.holder +
                             " was started meanwhile: stop what starts it, and run this again");
  }
  co_return Unit{};
}

struct PodName : kube::Object {
  bool ours = false;
};

kube::ObjectPtr decode_pod_name(const JsonView& json) {
  auto pod = std::make_shared<PodName>();
  if (!kube::decode_meta(json, *pod)) return nullptr;
  for (const JsonView finalizer : at(at(json, "metadata"), "finalizers")) {
    if (finalizer == reconciler::kFinalizer) pod->ours = true;
  }
  return pod;
}

Task<Status> release(kube::Client& client, std::string namespace_, std::string name,
                     std::string uid) {
  // As in controller::Executor: removes one value from the list; the UID is a precondition.
  const Json body = {
      {"metadata",
       {{"uid", uid},
        {"$deleteFromPrimitiveList/finalizers", Json::array({reconciler::kFinalizer})}}}};
  kube::CallOptions options;
  options.content_type = "application/strategic-merge-patch+json";
  auto patch =
      client.patch(kube::object_path("/api/v1", "pods", namespace_, name), body.dump(), options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer || answer.error().code == ErrorCode::kNotFound ||
      answer.error().code == ErrorCode::kConflict) {
    co_return Unit{};
  }
  co_return make_error(answer.error().code,
                       "pod " + namespace_ + "/" + name + ": " + answer.error().message);
}

struct Pass {
  int found = 0;                 // pods with the finalizer
  bool whole = true;             // the list was read to its end
  std::optional<Error> refused;  // the first pod that could not be released
};

Task<Result<Pass>> release_all_in(kube::Client& client, std::string namespace_) {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.metadata_only = true;
  kind.decode = decode_pod_name;
  Pass pass;
  std::string token;
  do {
    std::string query = "limit=" + std::to_string(kPageSize);
    if (!token.empty()) query += "&continue=" + kube::percent_encode(token);
    auto list = client.list(kind, namespace_, query);
    const Result<kube::ListPage> page = co_await list;
    if (!page && page.error().code == ErrorCode::kGone) {  // the next pass sees the rest
      pass.whole = false;
      break;
    }
    if (!page) co_return page.error();
    for (const kube::ObjectPtr& object : page->items) {
      const auto& pod = static_cast<const PodName&>(*object);
      if (!pod.ours) continue;
      ++pass.found;
      auto task = release(client, pod.namespace_, pod.name, pod.uid);
      const Status released = co_await task;
      // A webhook that blocks one pod must not block the others.
      if (!released && !pass.refused) pass.refused = released.error();
    }
    token = page->continue_token;
  } while (!token.empty());
  co_return pass;
}

// Releases pods until a whole list of the namespace (empty: of all) has none. Returns how many.
Task<Result<int>> empty_namespace(kube::Client& client, std::string namespace_, Log log) {
  int released = 0;
  for (int passes = 1;; ++passes) {
    auto task = release_all_in(client, namespace_);
    const Result<Pass> pass = co_await task;
    const bool listed = !namespace_.empty();
    if (listed && !pass && pass.error().code == ErrorCode::kForbidden) {
      // The namespace may have been deleted, and our permission with it.
      auto get = client.get("/api/v1/namespaces/" + kube::percent_encode(namespace_));
      const Result<JsonDocument> found = co_await get;
      if (!found && found.error().code == ErrorCode::kNotFound) {
        log.info("a namespace is gone", {{"namespace", namespace_}});
        co_return released;
      }
    }
    if (!pass) co_return pass.error();
    if (pass->refused) co_return *pass->refused;
    if (pass->found == 0 && pass->whole) co_return released;
    released += pass->found;
    if (passes == kMostPasses) {
      co_return make_error(ErrorCode::kInvalid,
                           "pods with the finalizer appear as fast as they are released: is an "
                           "operator still running?");
    }
  }
}

}  // namespace

Task<Result<int>> release_pods(kube::Client& client, ReleaseOptions options, Log log) {
  if (!options.deployment.empty()) {
    auto scale = scale_down(client, options.namespace_, options.deployment);
    const Status scaled = co_await scale;
    if (!scaled) co_return scaled.error();
    log.info("scaled to zero", {{"deployment", options.deployment}});
  }
  auto gone = await_replicas_gone(client, options.namespace_, log);
  const Result<Members> dead = co_await gone;
  if (!dead) co_return dead.error();
  std::vector<std::string> namespaces = options.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  int released = 0;
  std::optional<Error> failed;
  for (const std::string& namespace_ : namespaces) {
    auto task = empty_namespace(client, namespace_, log);
    const Result<int> done = co_await task;
    if (done) released += *done;
    if (!done && !failed) failed = done.error();
  }
  if (failed) co_return *failed;
  if (options.fails_batch_jobs) {
    auto task = controller::fail_batch_jobs(client, options.namespaces, log);
    const Result<int> done = co_await task;
    if (!done) co_return done.error();
  }
  auto look = none_came_back(client, options.namespace_, *dead);
  const Status alone = co_await look;
  if (!alone) co_return alone.error();
  log.info("no pod has the operator's finalizer any more",
           {{"released", std::to_string(released)}});
  co_return released;
}

int run_release_pods(const Options& options, const Log& log) {
  RealLoop loop;
  SeededRandom random(std::random_device{}());
  kube::ConnectOptions connect;
  connect.kubeconfig = options.kubeconfig;
  connect.qps = options.qps;
  connect.user_agent = std::string("holdfast-release-pods/") + kVersion;
  auto connection = kube::Connection::connect({loop, random, log, {}}, connect);
  if (!connection.ok()) {
    log.error("cannot start", {{"error", connection.error().message}});
    return kExitFailed;
  }
  // Requests in flight end as cancelled, and with them the task.
  StopSignals signals([&](const std::string&) { loop.post([&] { (*connection)->shut_down(); }); },
                      kSignalLimit, log);
  int exit_code = 0;
  const auto work = [&]() -> Task<void> {
    auto task = release_pods((*connection)->client(),
                             {options.namespace_, options.watch_namespaces, options.deployment,
                              !options.batch_jobs.empty()},
                             log);
    const Result<int> released = co_await task;
    if (released) co_return;
    log.error("pods may still have the operator's finalizer",
              {{"error", released.error().message}});
    exit_code = kExitFailed;
  };
  loop.post([&] {
    spawn(work(), [&](const std::exception_ptr& exception) {
      if (exception) exit_code = kExitFailed;
      (*connection)->shut_down();
      loop.post([&] { loop.stop(); });
    });
  });
  loop.run();
  return exit_code;
}

}  // namespace holdfast::runtime
