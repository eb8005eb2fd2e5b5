// One reflector, as a state machine without I/O: what has happened goes in, what is to be done
// comes out, in order. The informer carries it out (informer.cc), tests play the server.
//
//   start -> list (paged, or streamed through the watch) -> replace -> watch -> apply ...
//
// - The first list may come from any server's memory (version 0), a later one must not be older
//   than what was seen, and after 410 it is a consistent one (no version).
// - A streamed list is held back until its end mark; versions do not advance meanwhile. A server
//   that refuses it, or never ends it, is listed in pages from then on.
// - A watch that was cut off is resumed at the same version after a back-off, and after a look: a
//   consistent list of one object, whose version tells whether the server's data was set back. So
//   is one that ended cleanly but before its time, as when the server's own cache starts over. (A
//   restored server that has passed our version before we look cannot be told by versions.)
// - Trouble of each kind has a back-off of its own: a server that throttles, and one that does not
//   answer. A version that has expired is no trouble and is listed anew at once, once.
// - After a refresh() the watch is opened anew, and the store is shown to be as new as the server
//   was: the watch passes the version of the look before it, or, where nothing happens, a list of
//   metadata alone names no version that the store lacks. What differs the watch has to bring.
// - A version below one seen before, in a consistent list, is a time travel: everything is
//   replaced and it is counted.
//
// Each list, watch and timer has an epoch of its own. Inputs that name another epoch than the
// current one are answers to what was given up, and change nothing.
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
  kVersion,   // one object of any kind will do: only the list's version counts
  kMetadata,  // of all objects, in one answer
};
struct List {
  Epoch epoch;
  std::string query;  // what follows '?', selectors left out
  Wanted wanted = Wanted::kObjects;
};
// Against the store: what it has not been told yet of these is counted, and told by compared().
struct Compare {
  Epoch epoch;
  std::shared_ptr<const kube::ListPage> metadata;
};
struct Watch {
  Epoch epoch;
  std::string query;
  std::chrono::seconds timeout;  // after which the server ends it
};
struct CloseWatch {};  // the open one, if any
struct ArmTimer {      // in place of the one before
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
    // The server ends each watch after a random time between these.
    std::chrono::seconds watch_at_least = std::chrono::minutes(5);
    std::chrono::seconds watch_at_most = std::chrono::minutes(10);
  };

  // A watch that ends sooner than this without an event is an error, not an end.
  static constexpr Duration kTooShort = std::chrono::seconds(1);
  // A clean end this long before its time is not one that we asked for.
  static constexpr Duration kEarly = std::chrono::seconds(2);
  // A streamed list that brings nothing for so long will not end.
  static constexpr Duration kStreamSilence = std::chrono::seconds(60);
  // Streams that opened and broke before their end mark, until pages are tried instead.
  static constexpr int kStreamTries = 3;
  // Watches in a row that the server refused, or that broke before they brought anything, until it
  // is listed anew.
  static constexpr int kWatchTries = 5;
  // Of what a Retry-After asks for.
  static constexpr Duration kLongestAsked = std::chrono::minutes(5);
  // Trouble is forgiven after so long without any. What is in the order of things on a server that
  // answers, a short time without: a changed CRD throttles its watches and expires their version.
  static constexpr Duration kGoodFor = std::chrono::minutes(2);
  static constexpr Duration kSoonGood = std::chrono::seconds(5);
  // A watch that lags is listed anew this often: each list costs the server that lags more.
  static constexpr Duration kLagInterval = std::chrono::minutes(1);

  // After a refresh: how long the watch may take to pass the server's version, at least and at
  // most, until metadata is listed. Random, so that not all is listed at one moment.
  static constexpr Duration kPassAtLeast = std::chrono::milliseconds(100);
  static constexpr Duration kPassAtMost = std::chrono::milliseconds(500);
  // How long it may take to bring what differs, until everything is listed; asked this often.
  static constexpr Duration kCatchUp = std::chrono::seconds(2);
  static constexpr Duration kComparePeriod = std::chrono::milliseconds(100);

  ReflectorMachine(Config config, Random& random)
      : config_(config), random_(random), page_limit_(config.page_limit) {}

  Actions start(SteadyTime now);
  Actions page(Epoch epoch, kube::ListPage&& page, SteadyTime now);
  Actions list_failed(Epoch epoch, const Error& error, SteadyTime now);
  Actions watch_opened(Epoch epoch, SteadyTime now);
  Actions events(Epoch epoch, std::vector<kube::WatchEvent>&& events, SteadyTime now);
  // No error: the server ended it cleanly.
  Actions watch_ended(Epoch epoch, const std::optional<Error>& error, SteadyTime now);
  Actions timer(Epoch epoch, SteadyTime now);
  // Gives up the watch and lists anew, consistently. A consistent list that is under way goes on,
  // and a back-off is waited for.
  Actions relist(SteadyTime now);
  // A live read has shown what the watch has not told. Relists, at most once in kLagInterval, and
  // only while the watch is open. `seen` is for the log.
  Actions watch_lags(Log::Fields seen, SteadyTime now);
  // What the server has by now must be in the store before fresh() is true again.
  Actions refresh(SteadyTime now);
  // How much of what was to be compared the store has not been told yet.
  Actions compared(Epoch epoch, std::size_t behind, SteadyTime now);
  // Another request has shown that the server answers again after an outage: what was waited for
  // comes now, and the outage lengthens no later back-off.
  Actions server_answers(SteadyTime now);
  Actions stop();

  // Complete up to this version; 0 before the first list.
  std::uint64_t version() const { return version_; }
  // The watch is open and the list before it is complete.
  bool live() const { return state_ == State::kWatching && opened_at_.has_value(); }
  bool synced() const { return synced_; }
  // Live, and all that was there at the last refresh() is in the store.
  bool fresh() const { return live() && !refresh_due_; }
  std::uint64_t time_travels() const { return time_travels_; }
  // Events and items that decode() could not use.
  std::uint64_t undecodable() const { return undecodable_; }
  // The last trouble, empty once a list or a watch has succeeded since.
  const std::string& trouble() const { return trouble_; }
  // Equal versions are equal contents, in a list of this version: it may be told in the store's own
  // objects.
  bool versions_count(std::uint64_t version) const { return !set_back_ && version >= version_; }
  // A consistent list was found to hold older objects although its version was not lower.
  void objects_went_back() { ++time_travels_; }

 private:
  enum class State { kIdle, kListing, kStreaming, kLooking, kWatching, kWaiting };
  enum class Next { kList, kLook };
  enum class Check { kNone, kPassing, kListing, kComparing };

  // What the server says when it is asked for a version that it has not reached: it was set back,
  // or it is behind the one that was asked before.
  static bool version_ahead(const Error& error);
  // The answer was too large (kTerminal), or broke off.
  static bool is_incomplete(const Error& error);
  static Duration asked_by(const Error& error);

  void list(Actions& actions);
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
  Next next_ = Next::kList;   // kWaiting: what comes after
  SteadyTime asked_until_{};  // kWaiting: not before, said the server
  std::optional<SteadyTime> lagged_at_;

  // What is known.
  std::uint64_t version_ = 0;
  bool synced_ = false;
  bool set_back_ = false;  // a look has shown it; the list that replaces everything is still due
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

  // The refresh that is due, and the check of it that goes on beside an open watch.
  bool refresh_due_ = false;
  bool list_refreshes_ = false;  // the list under way began after it, and is consistent
  std::uint64_t must_pass_ = 0;  // the server's version after it
  Check check_ = Check::kNone;
  Epoch check_epoch_ = 0;
  SteadyTime comparing_since_{};
  std::shared_ptr<const kube::ListPage> metadata_;

  // The watch under way.
  std::chrono::seconds timeout_{};
  std::optional<SteadyTime> opened_at_;
  SteadyTime last_event_{};
  bool had_event_ = false;
  int watch_errors_ = 0;  // in a row
};

}  // namespace holdfast::cache
