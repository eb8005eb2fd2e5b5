// Waiting work of several tenants. Tenants take turns. At most `at_once` items of each tenant are
// in progress at a time, in the order of arrival. FairShare limits how many items of a tenant may
// wait, so a blocked tenant leaves room for others.
//
//   if (line.admits(tenant)) line.add(tenant, one);
//   while (auto next = line.next(now)) begin(next->tenant, next->one);
//   ... it has ended:      line.done(tenant, now);
//   ... or has to wait:    line.add_first(tenant, one), line.done(tenant, until);
//
// Pure.
#pragma once

#include <deque>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "client/controller/fair_share.h"
#include "core/time.h"

namespace holdfast::controller {

template <class T>
class FairLine {
 public:
  struct Next {
    std::string tenant;
    T one;
  };

  // `each`: how many items a tenant may have waiting if it is the only one. Only admits() asks.
  explicit FairLine(int each, int at_once = 1) : share_(each), at_once_(at_once) {}

  bool admits(const std::string& tenant) const { return share_.admits(tenant); }
  void add(const std::string& tenant, T one) {
    part(tenant).waiting.push_back(std::move(one));
    share_.begin(tenant);
  }
  void add_first(const std::string& tenant, T one) {
    part(tenant).waiting.push_front(std::move(one));
    share_.begin(tenant);
  }

  // Takes the next item. It is in progress until done().
  std::optional<Next> next(SteadyTime now) {
    for (auto part = parts_.begin(); part != parts_.end();) {
      if (part->in_progress == at_once_ || now < part->not_before) {
        ++part;
      } else if (!part->waiting.empty()) {
        return take(part);
      } else if (part->in_progress > 0) {
        ++part;
      } else {
        index_.erase(part->tenant);
        part = parts_.erase(part);
      }
    }
    return std::nullopt;
  }
  void done(const std::string& tenant, SteadyTime not_before) {
    Part& ended = part(tenant);
    --ended.in_progress;
    ended.not_before = not_before;
  }

  // When the first delayed tenant may go on; none: no tenant is delayed.
  std::optional<SteadyTime> wake(SteadyTime now) const {
    std::optional<SteadyTime> first;
    for (const Part& part : parts_) {
      const bool waits = part.in_progress < at_once_ && now < part.not_before;
      if (waits && (!first || part.not_before < *first)) first = part.not_before;
    }
    return first;
  }

  std::size_t waiting() const { return static_cast<std::size_t>(share_.in_use()); }

 private:
  struct Part {
    std::string tenant;
    std::deque<T> waiting;
    int in_progress = 0;
    SteadyTime not_before{};
  };
  using Parts = std::list<Part>;

  Part& part(const std::string& tenant) {
    const auto found = index_.find(tenant);
    if (found != index_.end()) return *found->second;
    parts_.push_back({tenant, {}, 0, {}});
    return *(index_[tenant] = std::prev(parts_.end()));
  }
  Next take(typename Parts::iterator part) {
    Next next{part->tenant, std::move(part->waiting.front())};
    part->waiting.pop_front();
    ++part->in_progress;
    share_.end(part->tenant);
    parts_.splice(parts_.end(), parts_, part);  // the others have their turns first
    return next;
  }

  FairShare share_;
  const int at_once_;
  Parts parts_;  // in the order of their turns
  std::unordered_map<std::string, typename Parts::iterator> index_;
};

}  // namespace holdfast::controller
