// A simulated Kubernetes API server with its etcd: the effects of requests, and the events of
// watches.
//
// It keeps the real server's contract as far as the operator, kubelets and users can see it:
// - resourceVersions from one counter, compare-and-swap, preconditions,
// - finalizers, graceful deletion, garbage collection by owner,
// - the CRD's CEL rules,
// - a watch cache that lags, bookmarks, compaction (410),
// - refusals on demand (429, 5xx).
// A script of operations runs on both servers and compares them.
//
// No time and no threads: the caller says when something happens. The model of the network decides
// when a request arrives, whether its answer arrives, and when watch lines are delivered. So the
// caller does the following:
// - `timeoutSeconds`: closes the watch (cleanly) when it has passed.
// - Retries of 504 with cause ResourceVersionTooLarge. The real server waits up to 3 s until its
//   watch cache reaches the version of a read; this one answers at once. A watch with
//   sendInitialEvents waits by itself for the cache.
// - compact(): the real server does that every five minutes. Until then history grows.
// - The pod collector. Within 20 s the real controller manager sets the phase of some pods to
//   Failed. These are being deleted, have no node and are held by a finalizer. It deletes pods
//   whose node is gone.
//
// It serves durablejobs, jobqueues, workerpools, batch/v1 jobs with managedBy, pods, nodes and
// namespaces with /status, leases, and events.k8s.io/v1 events. Only POST pods/<name>/binding
// {"target": {"name": node}} gives a pod to a node. A PUT that changes spec.nodeName is 422, as on
// the real server. A new server has the namespaces default, kube-node-lease, kube-public and
// kube-system.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/random.h"
#include "core/time.h"

namespace holdfast::simulation {

struct ApiRequest {
  std::string user;          // "holdfast-1", "kubelet-node-2", "user": for the trace and the ledger
  std::string method;        // GET, POST, PUT, PATCH, DELETE
  std::string target;        // path and query, encoded
  std::string content_type;  // patches only
  std::string body;
  std::string accept{};  // "...as=PartialObjectMetadata..." asks for metadata alone
};

struct ApiAnswer {
  int status = 0;
  std::string body;
  int retry_after_seconds = 0;  // 0: no such header
};

// One write, after it was applied. `before` is null for a create, `after` once the object is gone
// from storage.
struct Applied {
  const ApiRequest* request = nullptr;  // null: the garbage collector or another built-in part
  // "durablejobs", "jobqueues", "jobs", "pods", "leases", "nodes", "events", "namespaces"
  std::string resource;
  const Json* before = nullptr;
  const Json* after = nullptr;
};

using WatchId = std::uint64_t;

// Both may be called before watch() returns, and must not call the server.
struct WatchSink {
  // Lines in order. Each is one watch event as the real server sends it, without the newline.
  std::function<void(std::string line)> on_line;
  // The server has ended the watch. Nothing follows.
  std::function<void()> on_end;
};

class ApiServer {
 public:
  // `wall_clock`: the server's, its only source of time.
  ApiServer(std::function<Time()> wall_clock, std::uint64_t seed);
  ~ApiServer();

  // Applies the request at once and atomically.
  ApiAnswer handle(const ApiRequest& request);

  // A GET with watch=1 in its query. If the status is not 200, there is no watch and `id` is 0.
  struct Opened {
    ApiAnswer answer;
    WatchId id = 0;
  };
  Opened watch(const ApiRequest& request, WatchSink sink);
  void close_watch(WatchId watch);

  // Called for every write, also the built-in parts' own (GC).
  void on_applied(std::function<void(const Applied&)> observer);

  // Brings the watch cache up to `version`, or fully. Nothing else does. The cache serves watches
  // and reads at resourceVersion=0. Call it often, late, or not for a while.
  void advance_watch_cache();
  void advance_watch_cache_to(std::uint64_t version);
  std::uint64_t version() const;  // the stored data's
  std::uint64_t watch_cache_version() const;

  // Sends bookmarks on all watches that asked for them.
  void send_bookmarks();
  // Forgets history up to now. Older watches get 410 when they are opened again. Open watches that
  // lag behind end with an ERROR event 410.
  void compact();
  // Ends all watches, cleanly or silently (their sinks are not called). The watch cache restarts
  // from the stored data and knows nothing older: a watch from an older version gets 410.
  void restart(bool without_a_word = false);
  // One step of the garbage collector and the namespace controller over everything. Also removes
  // Events older than an hour. True: it did something.
  bool collect_garbage();
  // Restores the data of an earlier snapshot, with their versions: the counter goes back. History
  // is gone, and all watches end.
  std::string snapshot() const;
  void restore(const std::string& snapshot);

  // All stored objects of a resource, for checks and for kubelets' convenience.
  void for_each(const std::string& resource, const std::function<void(const Json&)>& visit) const;
  const Json* find(const std::string& resource, const std::string& namespace_,
                   const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::simulation
