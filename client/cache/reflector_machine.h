// One reflector, as a state machine without I/O. Events go in; actions come out, in order. The
// informer carries them out (informer.cc); tests play the server.
//
//   start -> list (paged, or streamed through the watch) -> replace -> watch -> apply ...
//
// - The first list may come from any server's memory (version 0). Later lists must not be older
//   than what the machine has seen. After 410 the list is consistent (no version).
// - A streamed list is held back until its end mark; meanwhile versions do not advance. If a server
//   refuses streamed lists, or never ends one, the machine lists in pages from then on.
// - After a broken watch the machine backs off, looks, and resumes the watch at the same version.
//   The same applies to a watch that ended cleanly but early, for example because the server's
//   cache restarted. A look is a consistent list of one object: its version shows whether the
//   server's data was set back. (If a restored server has passed our version before the look,
//   versions cannot show it.)
// - Each kind of trouble has a back-off of its own: a server that throttles, a server that does not
//   answer. An expired version is no trouble: the machine lists again at once, but only once.
// - After a refresh() the watch is opened again. Then the store must be shown to be as new as the
//   server was. Either the watch passes the version of the look before it. Or, if it does not, a
//   list of metadata names no version that the store lacks. The watch has to bring the
//   differences.
// - A watch on which nothing happens passes versions by bookmarks, and they come once a minute. But
//   the API server sends one 2 s before it ends a watch too (cacher.go, nextBookmarkTime). So the
//   first watch after a refresh is a short one.
// - If a consistent list has a version below an earlier one, that is a time travel. The machine
//   counts it and replaces everything.
//
// Each list, watch and timer has its own epoch. Inputs with another epoch than the current one
// answer something that was given up. The machine ignores them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "client/cache/backoff.h"
#include "client/cache/list_query.h"
#include "client/cache/store_update.h"
#include "client/kube/object.h"
#include "core/log.h"
#include "core/random.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::cache {

using Epoch = std::uint64_t;

namespace action {

enum class Wanted {
  kObjects,
  kVersion,   // any one object: only the list's version counts
  kMetadata,  // of every object, in one answer
};
struct List {
  Epoch epoch;
  std::string query;  // the part after '?', without selectors
  Wanted wanted = Wanted::kObjects;
};
// Compare the metadata with the store, and report through compared() how many objects lag behind.
struct Compare {
  Epoch epoch;
  std::shared_ptr<const kube::ListPage> metadata;
};
struct Watch {
  Epoch epoch;
  std::string query;
  std::chrono::seconds timeout;  // the server ends it then
};
struct CloseWatch {};  // the open one, if any
struct ArmTimer {      // replaces the timer before it
  Epoch epoch;
  Duration delay;
};
struct Replace {
  std::vector<ObjectPtr> items;
  std::uint64_t version;
  Trust trust;
};
// Object events in order, and the version up to which the store is complete after them.
struct Apply {
  std::vector<kube::WatchEvent> events;
  std::uint64_t version;
};
struct Note {  // for the log
  LogLevel level;
  std::string message;
  Log::Fields fields;
};

}  // namespace action

using Action = std::variant<action::List, action::Compare, action::Watch, action::CloseWatch,
                            action::ArmTimer, action::Replace, action::Apply, action::Note>;
using Actions = std::vector<Action>;

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
  // After this many streams that broke before their end mark the machine lists in pages.
  static constexpr int kStreamTries = 3;
  // After this many watches in a row that the server refused, or that broke before they brought
  // anything, the machine lists again.
  static constexpr int kWatchTries = 5;
  // The longest Retry-After that is obeyed.
  static constexpr Duration kLongestAsked = std::chrono::minutes(5);
  // A back-off starts over after this long without trouble of its kind.
  static constexpr Duration kGoodFor = std::chrono::minutes(2);
  // Shorter for a server that answers: a changed CRD throttles its watches and expires their
  // version, and that is normal.
  static constexpr Duration kSoonGood = std::chrono::seconds(5);
  // A lagging watch causes at most one list in this time: each list slows the server further.
  static constexpr Duration kLagInterval = std::chrono::minutes(1);

  // After a refresh: how long the short watch lasts, and how long the server may exceed that.
  static constexpr std::chrono::seconds kShortWatch{3};
  static constexpr Duration kShortWatchGrace = std::chrono::seconds(1);
  // How long the watch after it may take to pass the server's version. Then metadata is listed.
  // Random, so that the kinds are not all listed at one moment.
  static constexpr Duration kPassAtLeast = std::chrono::milliseconds(100);
  static constexpr Duration kPassAtMost = std::chrono::milliseconds(500);
  // How long the watch may take to bring the differences; then everything is listed. The store is
  // compared once in each period.
  static constexpr Duration kCatchUp = std::chrono::seconds(2);
  static constexpr Duration kComparePeriod = std::chrono::milliseconds(100);

  ReflectorMachine(Config config, Random& random)
      : config_(config), random_(random), page_limit_(config.page_limit) {}

  Actions start(SteadyTime now);
  Actions page(Epoch epoch, kube::ListPage&& page, SteadyTime now);
  Actions list_failed(Epoch epoch, const Error& error, SteadyTime now);
  Actions watch_opened(Epoch epoch, SteadyTime now);
  Actions events(Epoch epoch, std::vector<kube::WatchEvent>&& events, SteadyTime now);
  // No error: the server ended the watch cleanly.
  Actions watch_ended(Epoch epoch, const std::optional<Error>& error, SteadyTime now);
  Actions timer(Epoch epoch, SteadyTime now);
  // Gives up the watch and lists again, consistently. A consistent list under way goes on, and a
  // back-off still runs to its end.
  Actions relist(SteadyTime now);
  // The selector of the objects has changed. A list under way begins again. widened(): else the
  // machine lists, consistently. narrowed(): else the watch is opened again at the same version.
  Actions widened(SteadyTime now);
  Actions narrowed(SteadyTime now);
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
  bool live() const { return state_ == State::kWatching && opened_at_.has_value(); }
  bool synced() const { return synced_; }
  // Live, and the store has everything that the server had at the last refresh().
  bool fresh() const { return live() && !refresh_due_; }
  std::uint64_t time_travels() const { return time_travels_; }
  // Events and items that decode() could not use.
  std::uint64_t undecodable() const { return undecodable_; }
  // The last trouble, empty once a list or a watch has succeeded since.
  const std::string& trouble() const { return trouble_; }
  // True if equal versions mean equal contents in a list of this version. Then the list may share
  // the store's own objects.
  bool versions_count(std::uint64_t version) const { return !set_back_ && version >= version_; }
  // A consistent list held older objects, although its version was not lower.
  void objects_went_back() { ++time_travels_; }

 private:
  enum class State { kIdle, kListing, kStreaming, kLooking, kWatching, kWaiting };
  enum class Next { kList, kLook };
  enum class Check { kNone, kPassing, kListing, kComparing };

  // The server says that it has not reached the version asked for. Its data was set back, or it
  // lags behind the server asked before.
  static bool version_ahead(const Error& error);
  // The answer was too large (kTerminal) or incomplete.
  static bool is_incomplete(const Error& error);
  static Duration asked_by(const Error& error);

  void list(Actions& actions);
  Actions list_anew(SteadyTime now);
  void list_page(Actions& actions);
  void stream(Actions& actions);
  void look(Actions& actions);
  void watch(Actions& actions);
  Backoff& backoff_after(const Error& error);
  void things_go_well(SteadyTime now);
  void wait(Next next, const Error& error, SteadyTime now, Actions& actions);
  void wait_for(Duration delay, Next next, const Error& error, SteadyTime now, Actions& actions);
  void list_consistently(const Error& error, SteadyTime now, Actions& actions);
  void list_in_smaller_parts(const Error& error, SteadyTime now, Actions& actions);

  void listed(std::vector<ObjectPtr>&& items, std::uint64_t version, SteadyTime now,
              Actions& actions);
  void looked(std::uint64_t version, SteadyTime now, Actions& actions);
  void go_on_watching(Actions& actions);

  void begin_check(Actions& actions);
  void look_after_short_watch(Actions& actions);
  void arm_check(Check check, Duration delay, Actions& actions);
  void check_timer(SteadyTime now, Actions& actions);
  void check_listed(kube::ListPage&& metadata, SteadyTime now, Actions& actions);
  void check_failed(const Error& error, SteadyTime now, Actions& actions);
  void end_check();
  void settle_refresh();
  void stream_event(kube::WatchEvent&& event, SteadyTime now, Actions& actions);
  void stream_broke(const Error& error, SteadyTime now, Actions& actions);
  void watch_broke(const Error& error, SteadyTime now, Actions& actions);
  void watch_done(SteadyTime now, Actions& actions);
  void close_watch(Actions& actions);
  std::chrono::seconds watch_timeout();

  const Config config_;
  Random& random_;

  State state_ = State::kIdle;
  Epoch epochs_ = 0;
  Epoch epoch_ = 0;
  Backoff unanswered_{kGoodFor};
  Backoff throttled_{kSoonGood};
  Backoff expired_{kSoonGood, Duration::zero()};
  Next next_ = Next::kList;   // kWaiting: the next step
  SteadyTime asked_until_{};  // kWaiting: the server's Retry-After ends then
  std::optional<SteadyTime> lagged_at_;

  // The state of the store.
  std::uint64_t version_ = 0;
  bool synced_ = false;
  bool set_back_ = false;  // a look has shown a set-back; the list that replaces all is still due
  std::uint64_t time_travels_ = 0;
  std::uint64_t undecodable_ = 0;
  std::string trouble_;

  // The list under way, or due.
  Freshness freshness_ = Freshness::kAny;
  bool paged_ = true;  // false: all in one answer, after a page's token has expired
  int page_limit_;
  bool streams_refused_ = false;
  int broken_streams_ = 0;
  std::string continue_token_;
  std::uint64_t list_version_ = 0;
  std::vector<ObjectPtr> items_;
  std::unordered_map<std::string, ObjectPtr> streamed_;

  // The refresh that is due, and its check, which runs beside an open watch.
  bool refresh_due_ = false;
  bool list_refreshes_ = false;  // the list under way is consistent and began after the refresh
  std::uint64_t must_pass_ = 0;  // the server's version after the refresh
  bool short_watch_due_ = false;
  Check check_ = Check::kNone;
  Epoch check_epoch_ = 0;
  SteadyTime comparing_since_{};
  std::shared_ptr<const kube::ListPage> metadata_;

  // The watch under way.
  bool is_short_ = false;
  std::chrono::seconds timeout_{};
  std::optional<SteadyTime> opened_at_;
  SteadyTime last_event_{};
  bool had_event_ = false;
  int watch_errors_ = 0;  // in a row
};

}  // namespace holdfast::cache
