// Open watches. Each gets, in order, the changes that its watch cache has seen.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/server/query.h"
#include "tests/simulation/server/status.h"
#include "tests/simulation/server/storage.h"

namespace holdfast::simulation {

class Watches {
 public:
  explicit Watches(Storage& storage) : storage_(storage) {}

  // The sink may get its first lines, and its end, before this returns. It must not call the
  // server.
  ApiServer::Opened open(const Target& target, bool metadata_only, WatchSink sink);
  void close(WatchId watch) { watches_.erase(watch); }

  // Sends the changes up to `version`.
  void advance(std::uint64_t version);
  void send_bookmarks();
  // Watches that lag behind get 410; the others go on.
  void expire_unserved();
  // Ends watches silently: the sinks are not called.
  void end_all(bool without_a_word);

 private:
  struct Watch {
    const Table* table = nullptr;
    Filter filter;
    WatchSink sink;
    bool bookmarks = false;
    bool metadata_only = false;
    bool initial = false;          // send the state first
    bool marks_end = false;        // a bookmark ends the state
    std::uint64_t not_before = 0;  // the state waits until the cache has this version
    std::uint64_t after = 0;       // send only later changes
  };

  void send_initial(Watch& watch);
  void send_change(const Watch& watch, const Change& change);
  void send(const Watch& watch, const char* type, const Stored& object);
  void send_bookmark(const Watch& watch, bool end_of_initial_events);
  void fail(WatchSink& sink, const Json& status);

  Storage& storage_;
  std::map<WatchId, Watch> watches_;
  WatchId next_ = 1;
};

}  // namespace holdfast::simulation
