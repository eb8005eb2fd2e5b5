// Open watches: each is told, in order, the changes that its watch cache has seen.
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

  // The sink may be told its first lines, and its end, before this returns. It must not call the
  // server.
  ApiServer::Opened open(const Target& target, bool metadata_only, WatchSink sink);
  void close(WatchId watch) { watches_.erase(watch); }

  // Serves what happened up to `version`.
  void advance(std::uint64_t version);
  void send_bookmarks();
  // Those that have not been told all get 410; the others go on.
  void expire_unserved();
  // Without a word: the sinks are not told either.
  void end_all(bool without_a_word);

 private:
  struct Watch {
    const Table* table = nullptr;
    Filter filter;
    WatchSink sink;
    bool bookmarks = false;
    bool metadata_only = false;
    bool initial = false;          // the state is to be told first,
    bool marks_end = false;        // its end by a bookmark,
    std::uint64_t not_before = 0;  // once the cache has reached this version
    std::uint64_t after = 0;       // changes up to here are not told
  };

  void tell_initial(Watch& watch);
  void tell_change(const Watch& watch, const Change& change);
  void tell(const Watch& watch, const char* type, const Stored& object);
  void tell_bookmark(const Watch& watch, bool end_of_initial_events);
  void fail(WatchSink& sink, const Json& status);

  Storage& storage_;
  std::map<WatchId, Watch> watches_;
  WatchId next_ = 1;
};

}  // namespace holdfast::simulation
