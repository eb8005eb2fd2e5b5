// A simulated Kubernetes API server with its etcd: what a request does, and what watches see.
//
// It keeps the real one's contract as far as the operator, kubelets and users can tell:
// resourceVersions that are one counter, compare-and-swap, preconditions, finalizers and graceful
// deletion, garbage collection by owner, the CRD's CEL rules, a watch cache that lags behind the
// truth, bookmarks, compaction (410), refusals on demand (429, 5xx). It is checked against the real
// one by a script of operations that runs on both.
//
// Pure of time and threads: the caller says when something happens. Whoever models the network
// decides when a request arrives, whether its answer does, and when watch lines are delivered.
// So these are the caller's:
// - `timeoutSeconds` of a watch: close it (cleanly) when it has passed.
// - the 3 s for which the real server waits until its watch cache has reached a version that a read
//   asks for: here the answer is at once 504 with cause ResourceVersionTooLarge, and may be tried
//   again. A watch with sendInitialEvents waits by itself until the cache is there.
// - history grows until compact(); the real server does that each five minutes.
// - the pod collector: within 20 s the real controller manager sets the phase of a pod to Failed
//   that is being deleted, runs on no node and is held by a finalizer, and deletes pods whose node
//   is gone.
//
// Served: durablejobs, pods, nodes and namespaces with /status, leases, events.k8s.io/v1 events,
// and POST pods/<name>/binding {"target": {"name": node}}, which alone gives a pod to a node (a PUT
// that changes spec.nodeName is 422, as on the real server). A new one has the namespaces default,
// kube-node-lease, kube-public and kube-system.
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
  std::string content_type;  // of a patch
  std::string body;
  std::string accept{};  // "...as=PartialObjectMetadata..." asks for metadata alone
};

struct ApiAnswer {
  int status = 0;
  std::string body;
  int retry_after_seconds = 0;  // 0: no such header
};

// One accepted write, told after it was applied: `before` null for a create, `after` null once the
// object is gone from storage.
struct Applied {
  const ApiRequest* request = nullptr;  // null: the garbage collector or another built-in part
  std::string resource;  // "durablejobs", "pods", "leases", "nodes", "events", "namespaces"
  const Json* before = nullptr;
  const Json* after = nullptr;
};

using WatchId = std::uint64_t;

// Both may be called before watch() returns, and must not call the server.
struct WatchSink {
  // In order. Each line is one watch event as the real server sends it, without the newline.
  std::function<void(std::string line)> on_line;
  // The server has ended the watch; nothing comes after it.
  std::function<void()> on_end;
};

class ApiServer {
 public:
  // `wall_clock`: the server's. Nothing else of time is known to it.
  ApiServer(std::function<Time()> wall_clock, std::uint64_t seed);
  ~ApiServer();

  // Applied at once and atomically.
  ApiAnswer handle(const ApiRequest& request);

  // A GET with watch=1 in its query. Any status but 200: there is no watch, `id` is 0.
  struct Opened {
    ApiAnswer answer;
    WatchId id = 0;
  };
  Opened watch(const ApiRequest& request, WatchSink sink);
  void close_watch(WatchId watch);

  // Told about every write, also those that change nothing of the outside (GC).
  void on_applied(std::function<void(const Applied&)> observer);

  // The watch cache, from which watches and reads at resourceVersion=0 are served, is brought up to
  // the truth only by this: as far as `version`, or fully. Call it often, late, or not for a while.
  void advance_watch_cache();
  void advance_watch_cache_to(std::uint64_t version);
  std::uint64_t version() const;  // of the truth
  std::uint64_t watch_cache_version() const;

  // Sends bookmarks on all watches that asked for them.
  void send_bookmarks();
  // Forgets history up to now: older watches get 410 when they are opened anew, and open ones that
  // have not been served yet are ended with an ERROR event 410.
  void compact();
  // Ends all watches, cleanly or without a word (their sinks are not told); the watch cache starts
  // anew at the truth and knows nothing older: a watch from an older version gets 410.
  void restart(bool without_a_word = false);
  // One step of the garbage collector and the namespace controller over everything; Events older
  // than an hour go too. True: it did something.
  bool collect_garbage();
  // The data of an earlier moment come back (a restore from a snapshot), and their versions with
  // them: the counter goes back. History is gone, and all watches end.
  std::string snapshot() const;
  void restore(const std::string& snapshot);

  // The truth, for checks and for kubelets' convenience: all objects of a resource.
  void for_each(const std::string& resource, const std::function<void(const Json&)>& visit) const;
  const Json* find(const std::string& resource, const std::string& namespace_,
                   const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::simulation
