// A local, eventually consistent copy of all objects of one kind, kept by list and watch.
//
// Informer = Store (the objects) + one Reflector for each watched namespace (keeps them current).
// Everything runs on the loop. Objects are immutable and shared. Events arrive in the server's
// order.
//
// A namespace without a live watch is set aside while another namespace has one, because trouble
// with one namespace must not hide the others. Its part of the store stays as it was, and its
// reflector retries with back-off. Meanwhile synced(), live() and quiet_for() describe the other
// namespaces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cache/store.h"
#include "client/kube/client.h"
#include "client/kube/object.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"

namespace holdfast::cache {

// Which objects of a kind are wanted, as kube::Kind has it.
struct Selector {
  std::string labels;
  std::string fields;
  bool operator==(const Selector&) const = default;
};

class Informer {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    // Lists arrive through the watch if the server supports that, else in pages.
    bool streaming_lists = true;
  };
  // `namespaces`: empty means all (or a cluster-scoped kind). The dependencies outlive it.
  Informer(Dependencies dependencies, kube::Kind kind, std::vector<std::string> namespaces);
  ~Informer();

  const kube::Kind& kind() const;
  Store& store();

  // Handlers run on the loop after the store has changed. A replace swaps the whole store first.
  // Add them before start().
  void on_change(std::function<void(const Change&)> handler);
  // Runs after every change of a namespace's live() and whenever a version advances. Check then
  // whether waiting work can go on.
  void on_progress(std::function<void()> handler);

  void start();
  // Ends the watches. No handler runs after it.
  void stop();

  // The initial lists are in the store, and the handlers have seen them.
  bool synced() const;

  // The server's version up to which this namespace's part of the store is complete; 0 before the
  // first list. Advances with every event and bookmark.
  std::uint64_t version(const std::string& namespace_) const;

  // True while a watch is open. With a single watch, the store then shows everything that a watch
  // can show.
  bool live() const;

  // The same for this namespace's watch.
  bool live(const std::string& namespace_) const;

  // When live() last changed, in steady time.
  SteadyTime live_changed_at() const;

  // How often a consistent list (not version 0) showed a version below an earlier one: the server's
  // data was set back (etcd restored). The store has been replaced by then.
  std::uint64_t time_travels() const;

  // Drops the watches and lists again, consistently.
  void relist();

  // Changes which objects are wanted. widen(): the new selector selects all objects that the old one
  // does, and more. Everything is listed again, consistently. narrow(): it selects fewer, and `keep`
  // says which. The others leave the store without a change, because they are not deleted, and
  // nothing is listed. It returns them. Before start(), both only set the selector. If the server
  // cannot select, or the selector stays the same, nothing leaves. Nor is anything listed, if the
  // last list had this selector. Not from a handler.
  void widen(const Selector& selector);
  std::vector<ObjectPtr> narrow(const Selector& selector,
                                const std::function<bool(const ObjectPtr& object)>& keep);
  // Tells the handlers of such an object as if it were deleted.
  void report_gone(ObjectPtr dropped);
  // How often widen() had been called when the last list of this namespace began that is in the
  // store.
  std::uint64_t widened(const std::string& namespace_) const;
  // The list of the last widen() is under way for this namespace, and has not failed so far.
  bool widening(const std::string& namespace_) const;

  // Of a kind with a field selector: the server reports an object that stops matching as deleted,
  // with its last matching content and the new version. `leave` says what the store has of it from
  // then on: an object that is kept, or null, because it is gone. `version`: of that event; 0: a
  // list lacked it. Add it before start().
  using Leave = std::function<ObjectPtr(const ObjectPtr& stored, std::uint64_t version)>;
  void on_leave(Leave leave);
  // What a read has shown and no list or watch brings. It stays until drop(), until the server's
  // data is set back, or until a list or a watch brings it. Older than what is stored: no change.
  void keep(ObjectPtr object);
  // A kept object is gone, or no longer wanted. Nothing, if it is not kept.
  void drop(const std::string& key);
  bool is_kept(const std::string& key) const;
  // The server does not know the field: everything is listed and watched, and it is tried again
  // each minute.
  bool is_unselected() const;

  // Brings the store up to what the server has now. Watches go on from their versions. Where a
  // check is needed, only metadata is listed.
  void refresh();
  // True once the store has caught up and while the watch is open. on_progress() reports each
  // change.
  bool fresh() const;
  bool fresh(const std::string& namespace_) const;

  // A live read has shown something that this namespace's watch has not reported yet. Lists the
  // namespace again, at most once a minute. `seen` describes the read, for the log.
  void watch_lags(const std::string& namespace_, Log::Fields seen);

  // Another request has shown that the server answers again after an outage: ends back-offs.
  void server_answers();

  // The longest time that a watch has received no byte from the server. For the liveness probe and
  // a metric.
  Duration quiet_for() const;

  // Objects that decode() could not use, over all lists and watches.
  std::uint64_t undecodable() const;

  // How many namespaces have no live watch.
  int closed() const;

  // The last error of a list or watch that has not succeeded since; empty: none. For the message
  // when the caches do not become synced.
  std::string trouble() const;
  // The same for this namespace.
  std::string trouble(const std::string& namespace_) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::cache
