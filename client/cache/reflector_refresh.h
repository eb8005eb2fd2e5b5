// The check, after a refresh, that the store is as new as the server was. It runs beside an open
// watch. Loop only.
//
// Either the watch passes the version of the look before it. Or, if it does not, a list of metadata
// names no version that the store lacks. The watch has to bring the differences.
//
// A watch on which nothing happens passes versions by bookmarks, and they come once a minute. But
// the API server sends one 2 s before it ends a watch too (cacher.go, nextBookmarkTime). So the first
// watch after a refresh is a short one.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "client/cache/reflector_actions.h"
#include "client/cache/reflector_trouble.h"
#include "core/random.h"

namespace holdfast::cache {

class RefreshCheck {
 public:
  // How long the short watch lasts, and how long the server may exceed that.
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

  // `epochs`: the last epoch that the machine has given away.
  RefreshCheck(Random& random, ReflectorTrouble& trouble, Epoch& epochs)
      : random_(random), trouble_(trouble), epochs_(epochs) {}

  // A refresh() is not shown to be complete yet.
  bool is_due() const { return is_due_; }
  void ask();

  // What the machine begins ends the check under way. A consistent list that begins after the
  // refresh and ends completes it.
  void end();
  void list_begins();
  void list_ended();
  void look_begins();
  // The server has this version after the refresh.
  void looked(std::uint64_t version) { must_pass_ = version; }
  // The server may have been set back while the short watch was open, so a look follows it. Another
  // short watch would bring no bookmark either.
  void no_short_watch() { short_watch_due_ = false; }
  // True: the watch that begins now is a short one.
  bool watch_begins(std::uint64_t version);

  // The store has this version.
  void watch_opened(std::uint64_t version, bool is_short, Actions& actions);
  void passed(std::uint64_t version);

  // Inputs with this epoch are the check's.
  bool owns(Epoch epoch) const { return step_.index() != 0 && epoch == epoch_; }
  bool lists(Epoch epoch) const {
    return std::holds_alternative<Listing>(step_) && epoch == epoch_;
  }
  bool compares(Epoch epoch) const {
    return std::holds_alternative<Comparing>(step_) && epoch == epoch_;
  }
  // True: the short watch has not ended in time.
  bool timer(bool watch_is_short, Actions& actions);
  void listed(kube::ListPage&& metadata, SteadyTime now, Actions& actions);
  // True: everything must be listed.
  bool failed(const Error& error, SteadyTime now, Actions& actions);
  // The same: the watch does not bring the differences. `behind`: see action::Compare.
  bool compared(std::size_t behind, SteadyTime now, Actions& actions);

 private:
  struct Passing {};
  struct Listing {};
  struct Comparing {
    std::shared_ptr<const kube::ListPage> metadata;
    SteadyTime since;
  };

  void arm(Duration delay, Actions& actions);
  void wait_to_pass(Duration delay, Actions& actions);
  void settle();

  Random& random_;
  ReflectorTrouble& trouble_;
  Epoch& epochs_;

  bool is_due_ = false;
  bool list_counts_ = false;     // the list under way began after the refresh
  std::uint64_t must_pass_ = 0;  // the server's version after the refresh
  bool short_watch_due_ = false;

  std::variant<std::monostate, Passing, Listing, Comparing> step_;
  Epoch epoch_ = 0;
};

}  // namespace holdfast::cache
