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
#include "operator/jobs/gone_namespace.h"
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
constexpr minutes kReplicasStopLimit{4};
constexpr minutes kLeaseMargin{1};
constexpr int kPageSize = 500;
constexpr seconds kSignalLimit{5};
// The most passes: if somebody creates pods with our finalizer all the time, this must end.
constexpr int kMostPasses = 20;

Task<void> pause(Loop& loop, Duration duration) {
  Callback<Unit> passed([&loop, duration](Callback<Unit>::Done done) {
    loop.call_after(duration, [done = std::move(done)] { done(Unit{}); });
  });
  co_await passed;
}

Task<Result<>> scale_down(kube::Client& client, std::string namespace_, std::string name, Log log) {
  kube::CallOptions options;
  options.content_type = "application/merge-patch+json";
  const std::string path =
      kube::object_path("/apis/apps/v1", "deployments", namespace_, name) + "/scale";
  auto patch = client.patch(path, R"({"spec":{"replicas":0}})", options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer) {
    log.info("scaled to zero", {{"deployment", name}});
  } else if (answer.error().code == ErrorCode::kNotFound) {
    log.warn("there is no such Deployment", {{"deployment", name}, {"namespace", namespace_}});
  } else {
    co_return answer.error();
  }
  co_return Unit{};
}

Task<Result<std::vector<kube::ObjectPtr>>> members(kube::Client& client, std::string namespace_) {
  const kube::Kind kind =
      membership::lease_kind(std::string(membership::kLeaseLabel) + "=" + membership::kMemberLease);
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
  Duration limit = kReplicasStopLimit;
  Members seen;
  std::string logged;
  while (true) {
    auto list = members(client, namespace_);
    const Result<std::vector<kube::ObjectPtr>> leases = co_await list;
    if (!leases) co_return leases.error();
    std::string alive;
    for (const kube::ObjectPtr& object : *leases) {
      const auto& lease = static_cast<const membership::CachedLease&>(*object);
      Seen& last = seen[lease.uid];
      if (last.version != lease.version) last = {lease.version, loop.now()};
      limit = std::max<Duration>(limit, lease.duration + kLeaseMargin);
      if (loop.now() - last.since <= lease.duration) alive = lease.holder;
    }
    if (alive.empty()) co_return seen;
    if (logged != alive) log.info("waiting until no replica is alive", {{"replica", alive}});
    logged = alive;
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
Task<Result<>> none_came_back(kube::Client& client, std::string namespace_, Members dead) {
  auto list = members(client, namespace_);
  const Result<std::vector<kube::ObjectPtr>> leases = co_await list;
  if (!leases) co_return leases.error();
  for (const kube::ObjectPtr& object : *leases) {
    const auto& lease = static_cast<const membership::CachedLease&>(*object);
    const auto found = dead.find(lease.uid);
    if (found != dead.end() && found->second.version == lease.version) continue;
    co_return make_error(ErrorCode::kConflict,
                         "replica " + lease.holder +
                             " was started meanwhile: stop what starts it, and run this again");
  }
  co_return Unit{};
}

// What has a finalizer of ours: pods, and jobs that run a batch/v1 Job and notify targets.
struct Releases {
  const char* group_path;
  const char* plural;
  const char* one;
  const char* finalizer;
  bool is_builtin;  // its patches can remove one value of a list
};
constexpr Releases kPods{"/api/v1", "pods", "pod", reconciler::kFinalizer, true};
constexpr Releases kJobs{reconciler::kJobGroupPath, reconciler::kJobPlural, "job",
                         reconciler::kOutboxFinalizer, false};

struct Held : kube::Object {
  bool ours = false;
  Json others = Json::array();  // its other finalizers
};

kube::ObjectPtr decode_held(const JsonView& json, const std::string& finalizer) {
  auto held = std::make_shared<Held>();
  if (!kube::decode_meta(json, *held)) return nullptr;
  for (const JsonView one : at(at(json, "metadata"), "finalizers")) {
    if (one == finalizer) {
      held->ours = true;
    } else {
      held->others.push_back(std::string(one.string_or("")));
    }
  }
  return held;
}

Task<Result<>> release(kube::Client& client, Releases what, std::shared_ptr<const Held> held) {
  Json meta = {{"uid", held->uid}};
  kube::CallOptions options;
  if (what.is_builtin) {
    meta["$deleteFromPrimitiveList/finalizers"] = Json::array({what.finalizer});
    options.content_type = "application/strategic-merge-patch+json";
  } else {
    // With the version as a precondition. A conflict is for the next pass.
    meta["resourceVersion"] = std::to_string(held->version);
    meta["finalizers"] = held->others;
    options.content_type = "application/merge-patch+json";
  }
  const Json body = {{"metadata", std::move(meta)}};
  auto patch =
      client.patch(kube::object_path(what.group_path, what.plural, held->namespace_, held->name),
                   body.dump(), options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer || answer.error().code == ErrorCode::kNotFound ||
      answer.error().code == ErrorCode::kConflict) {
    co_return Unit{};
  }
  co_return make_error(answer.error().code,
                       std::string(what.one) + " " + held->key() + ": " + answer.error().message);
}

struct Pass {
  int found = 0;                 // those with the finalizer
  bool whole = true;             // the list was read to its end
  std::optional<Error> refused;  // the first one that could not be released
};

Task<Result<Pass>> release_all_in(kube::Client& client, Releases what, std::string namespace_) {
  kube::Kind kind;
  kind.name = what.plural;
  kind.group_path = what.group_path;
  kind.plural = what.plural;
  kind.metadata_only = true;
  kind.decode = [what](const JsonView& json) { return decode_held(json, what.finalizer); };
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
      const auto held = kube::as<Held>(object);
      if (!held->ours) continue;
      ++pass.found;
      auto task = release(client, what, held);
      const Result<> released = co_await task;
      // A webhook that blocks one must not block the others.
      if (!released && !pass.refused) pass.refused = released.error();
    }
    token = page->continue_token;
  } while (!token.empty());
  co_return pass;
}

// Releases them until a whole list of the namespace (empty: of all) has none. Returns how many.
Task<Result<int>> empty_namespace(kube::Client& client, Releases what, std::string namespace_,
                                  Log log) {
  int released = 0;
  for (int passes = 1;; ++passes) {
    auto task = release_all_in(client, what, namespace_);
    const Result<Pass> pass = co_await task;
    // The definition of DurableJobs is gone, and all of them with it.
    if (!pass && pass.error().code == ErrorCode::kNotFound) co_return released;
    if (!pass) {
      auto gone = jobs::is_of_gone_namespace(client, pass.error(), namespace_);
      if (!co_await gone) co_return pass.error();
      log.info("a namespace is gone", {{"namespace", namespace_}});
      co_return released;
    }
    if (pass->refused) co_return *pass->refused;
    if (pass->found == 0 && pass->whole) co_return released;
    released += pass->found;
    if (passes == kMostPasses) {
      co_return make_error(ErrorCode::kInvalid,
                           std::string(what.plural) +
                               " with the finalizer appear as fast as they are released: is an "
                               "operator still running?");
    }
  }
}

}  // namespace

Task<Result<int>> release_pods(kube::Client& client, ReleaseOptions options, Log log) {
  if (!options.deployment.empty()) {
    auto scale = scale_down(client, options.namespace_, options.deployment, log);
    const Result<> scaled = co_await scale;
    if (!scaled) co_return scaled.error();
  }
  auto gone = await_replicas_gone(client, options.namespace_, log);
  const Result<Members> dead = co_await gone;
  if (!dead) co_return dead.error();
  std::vector<std::string> namespaces = options.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  int released = 0;
  std::optional<Error> failed;
  for (const Releases& what : {kPods, kJobs}) {
    for (const std::string& namespace_ : namespaces) {
      auto task = empty_namespace(client, what, namespace_, log);
      const Result<int> done = co_await task;
      if (done && what.is_builtin) released += *done;
      if (!done && !failed) failed = done.error();
    }
    if (failed) co_return *failed;
  }
  if (options.fails_batch_jobs) {
    auto task = lane_controller::fail_batch_jobs(client, options.namespaces, log);
    const Result<int> done = co_await task;
    if (!done) co_return done.error();
  }
  auto look = none_came_back(client, options.namespace_, *dead);
  const Result<> alone = co_await look;
  if (!alone) co_return alone.error();
  log.info("no pod and no job has the operator's finalizer any more",
           {{"released", std::to_string(released)}});
  co_return released;
}

int run_release_pods(const Options& options, const Log& log) {
  RealLoop loop;
  SeededRandom random(std::random_device{}());
  kube::ConnectOptions connect;
  connect.kubeconfig = options.api.kubeconfig;
  connect.qps = options.api.qps;
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
                             {options.replica.namespace_, options.watch_namespaces,
                              options.deployment, !options.batch_jobs.empty()},
                             log);
    const Result<int> released = co_await task;
    if (released) co_return;
    log.error("pods or jobs may still have the operator's finalizer",
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
