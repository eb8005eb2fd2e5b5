// A local, eventually consistent copy of all objects of one kind, kept by list and watch.
//
// Informer = Store (what is known) + one Reflector for each watched namespace (how it is kept).
// Everything runs on the loop. Objects are immutable and shared. Order of events is the server's.
//
// A namespace without a live watch is set aside while another has one: trouble with one namespace
// must not blind us for the others. Its part of the store stays as it was, it is tried again with
// back-off, and synced(), live() and quiet_for() are of the others.
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

class Informer {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    // Lists arrive through the watch where the server can do that, else in pages.
    bool streaming_lists = true;
  };
  // `namespaces`: empty means all (or a cluster-scoped kind). The dependencies outlive it.
  Informer(Dependencies dependencies, kube::Kind kind, std::vector<std::string> namespaces);
  ~Informer();

  const kube::Kind& kind() const;
  Store& store();

  // Handlers run on the loop after the store has changed; for a replace, after the whole store was
  // swapped. Add them before start().
  void on_change(std::function<void(const Change&)> handler);
  // Called after every change of a namespace's live() and after every advance of versions: a time
  // to look at what was held back.
  void on_progress(std::function<void()> handler);

  void start();
  // Ends the watches. Handlers are not called any more.
  void stop();

  // The initial lists are in the store and were delivered.
  bool synced() const;

  // The server's version up to which this namespace's part of the store is complete; 0 before the
  // first list. Advances with every event and bookmark.
  std::uint64_t version(const std::string& namespace_) const;

  // True while a watch is open. Of a kind with one watch: what the store does not show has not
  // happened, as far as a watch can tell.
  bool live() const;

  // Likewise of this namespace's watch.
  bool live(const std::string& namespace_) const;

  // Steady time since when live() has had its value.
  SteadyTime live_changed_at() const;

  // A consistent (not version 0) list showed a version below one seen before: the server's data was
  // set back (etcd restored). Counts up each time; the store has been replaced by then.
  std::uint64_t time_travels() const;

  // Drops the watches and lists anew, consistently.
  void relist();

  // The store must come to show what the server has by now. Watches go on from their versions;
  // what they have kept is not listed again but by its metadata.
  void refresh();
  // True once it does, while the watch is open; a change of it is told to on_progress().
  bool fresh() const;
  bool fresh(const std::string& namespace_) const;

  // A live read has shown what this namespace's watch has not told: it is listed anew, at most once
  // a minute. `seen`: what the read was of, for the log.
  void watch_lags(const std::string& namespace_, Log::Fields seen);

  // Ends back-offs: another request has shown that the server answers again after an outage.
  void server_answers();

  // The watch that has gone longest without any sign of life (byte from the server), for the
  // liveness probe and a metric.
  Duration quiet_for() const;

  // Objects that decode() could not use, over all lists and watches.
  std::uint64_t undecodable() const;

  // How many namespaces have no live watch.
  int closed() const;

  // What went wrong last with a list or watch that has not succeeded since; empty: nothing. For the
  // message when the caches do not become synced.
  std::string trouble() const;
  // Likewise of this namespace's.
  std::string trouble(const std::string& namespace_) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::cache
