// One reflector, as a state machine without I/O. Events go in; actions come out, in order. The
// informer carries them out (informer_state.cc); tests play the server.
//
//   start -> list (paged, or streamed through the watch) -> replace -> watch -> apply ...
//
// - The first list may come from any server's memory (version 0). Later lists must not be older
//   than what the machine has seen. After 410 the list is consistent (no version).
// - A streamed list is held back until its end mark; meanwhile versions do not advance.
// - After a broken watch the machine backs off, looks, and resumes the watch at the same version.
//   The same applies to a watch that ended cleanly but early, for example because the server's
//   cache restarted. A look is a consistent list of one object: its version shows whether the
//   server's data was set back. (If a restored server has passed our version before the look,
//   versions cannot show it.)
// - If a consistent list has a version below an earlier one, that is a time travel. The machine
//   counts it and replaces everything.
//
// Its parts: reflector_list.h (the list under way), reflector_trouble.h (errors and back-off), and
// reflector_refresh.h (the check after a refresh).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cache/reflector_actions.h"
#include "client/cache/reflector_list.h"
#include "client/cache/reflector_refresh.h"
#include "client/cache/reflector_trouble.h"
#include "client/kube/object.h"
#include "core/log.h"
#include "core/random.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::cache {

class ReflectorMachine {
 public:
  struct Config {
    bool streaming_lists = true;
    int page_limit = 500;
    // The server ends each watch after a random time in this range.
    std::chrono::seconds watch_at_least = std::chrono::minutes(5);
    std::chrono::seconds watch_at_most = std::chrono::minutes(10);
  };

  // A watch that ends sooner than this without an event is an error, not an end.
  static constexpr Duration kTooShort = std::chrono::seconds(1);
  // A clean end this long before the asked time counts as early.
  static constexpr Duration kEarly = std::chrono::seconds(2);
  // A streamed list that brings nothing for this long is given up.
  static constexpr Duration kStreamSilence = std::chrono::seconds(60);
  // After this many watches in a row that the server refused, or that broke before they brought
  // anything, the machine lists again.
  static constexpr int kWatchTries = 5;
  // A lagging watch causes at most one list in this time: each list slows the server further.
  static constexpr Duration kLagInterval = std::chrono::minutes(1);

  ReflectorMachine(Config config, Random& random)
      : config_(config),
        random_(random),
        trouble_(random),
        list_(config.streaming_lists, config.page_limit),
        check_(random, trouble_, epochs_) {}
  ReflectorMachine(const ReflectorMachine&) = delete;
  ReflectorMachine& operator=(const ReflectorMachine&) = delete;

  Actions start();
  Actions page(Epoch epoch, kube::ListPage&& page, SteadyTime now);
  Actions list_failed(Epoch epoch, const Error& error, SteadyTime now);
  Actions watch_opened(Epoch epoch, SteadyTime now);
  Actions events(Epoch epoch, std::vector<kube::WatchEvent>&& events, SteadyTime now);
  // No error: the server ended the watch cleanly.
  Actions watch_ended(Epoch epoch, const std::optional<Error>& error, SteadyTime now);
  Actions timer(Epoch epoch, SteadyTime now);
  // Gives up the watch and lists again, consistently. A consistent list under way goes on, and a
  // back-off still runs to its end.
  Actions relist();
  // The selector of the objects has changed. A list under way begins again. widened(): else the
  // machine lists, consistently. narrowed(): else the watch is opened again at the same version.
  Actions widened();
  Actions narrowed();
  // A live read has shown something that the watch has not reported yet. Relists, at most once in
  // kLagInterval, and only while the watch is open. `seen` is for the log.
  Actions watch_lags(Log::Fields seen, SteadyTime now);
  // fresh() is false from now on, until the store has everything that the server has now.
  Actions refresh(SteadyTime now);
  // The answer to Compare: how many objects the store lacks in their listed version.
  Actions compared(Epoch epoch, std::size_t behind, SteadyTime now);
  // Another request has shown that the server answers again after an outage. Ends the wait, and the
  // outage lengthens no later back-off.
  Actions server_answers(SteadyTime now);
  Actions stop();

  // The store is complete up to this version; 0 before the first list.
  std::uint64_t version() const { return version_; }
  // The watch is open and the list before it is complete.
  bool live() const { return state_ == State::kWatching && watch_.opened_at.has_value(); }
  bool synced() const { return synced_; }
  // Live, and the store has everything that the server had at the last refresh().
  bool fresh() const { return live() && !check_.is_due(); }
  std::uint64_t time_travels() const { return time_travels_; }
  // Events and items that decode() could not use.
  std::uint64_t undecodable() const { return undecodable_; }
  // The last trouble, empty once a list or a watch has succeeded since.
  const std::string& trouble() const { return trouble_.text(); }
  // True if equal versions mean equal contents in a list of this version. Then the list may share
  // the store's own objects.
  bool versions_count(std::uint64_t version) const { return !set_back_ && version >= version_; }
  // A consistent list held older objects, although its version was not lower.
  void objects_went_back() { ++time_travels_; }

 private:
  enum class State { kIdle, kListing, kStreaming, kLooking, kWatching, kWaiting };
  enum class Next { kList, kLook };

  // What begins next. Each gives up what is under way, except an open watch.
  void list(Actions& actions);
  void list_page(Actions& actions);
  void stream(Actions& actions);
  void look(Actions& actions);
  void look_after_short_watch(Actions& actions);
  void watch(Actions& actions);
  void wait(Next next, const Error& error, SteadyTime now, Actions& actions);
  void wait_for(Duration delay, Next next, const Error& error, SteadyTime now, Actions& actions);
  void list_consistently(const Error& error, SteadyTime now, Actions& actions);
  void close_watch(Actions& actions);
  std::chrono::seconds watch_timeout();

  bool is_listing() const { return state_ == State::kListing || state_ == State::kStreaming; }
  Actions list_anew();
  void listed(std::uint64_t version, SteadyTime now, Actions& actions);
  void looked(std::uint64_t version, Actions& actions);
  void stream_event(kube::WatchEvent&& event, SteadyTime now, Actions& actions);
  void stream_broke(const Error& error, SteadyTime now, Actions& actions);
  void watch_broke(const Error& error, SteadyTime now, Actions& actions);
  void watch_done(SteadyTime now, Actions& actions);

  struct OpenWatch {
    bool is_short = false;  // after a refresh
    std::chrono::seconds timeout{};
    std::optional<SteadyTime> opened_at;
    SteadyTime last_event{};
    bool had_event = false;
  };

  const Config config_;
  Random& random_;

  State state_ = State::kIdle;
  Epoch epochs_ = 0;          // the last one given away
  Epoch epoch_ = 0;           // of the list, look, watch or wait under way
  Next next_ = Next::kList;   // kWaiting: the next step
  SteadyTime asked_until_{};  // kWaiting: the server's Retry-After ends then
  std::optional<SteadyTime> lagged_at_;
  int watch_errors_ = 0;  // in a row

  // The state of the store.
  std::uint64_t version_ = 0;
  bool synced_ = false;
  bool set_back_ = false;  // a look has shown a set-back; the list that replaces all is still due
  std::uint64_t time_travels_ = 0;
  std::uint64_t undecodable_ = 0;

  ReflectorTrouble trouble_;
  ReflectorList list_;
  OpenWatch watch_;  // the streamed list, or the watch
  RefreshCheck check_;
};

}  // namespace holdfast::cache
