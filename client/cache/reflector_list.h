// The list that a reflector has under way or due: how to ask for it, and what has come of it so far.
// Values only: it sends nothing. Loop only.
//
// A list comes in pages, or streamed through the watch. If a server refuses streamed lists, or never
// ends one, lists come in pages from then on.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/cache/list_query.h"
#include "client/cache/store_update.h"
#include "client/kube/object.h"

namespace holdfast::cache {

class ReflectorList {
 public:
  // After this many streams that broke before their end mark, lists come in pages.
  static constexpr int kStreamTries = 3;

  ReflectorList(bool streamed, int page_limit) : is_streamed_(streamed), page_limit_(page_limit) {}

  bool is_consistent() const { return freshness_ == Freshness::kConsistent; }
  void must_be_consistent() { freshness_ = Freshness::kConsistent; }
  bool is_streamed() const { return is_streamed_; }
  void stream_no_more() { is_streamed_ = false; }
  // A stream has opened, and broke before its end mark. True: too often.
  bool stream_broke() { return ++broken_streams_ >= kStreamTries; }

  // Forgets what has come.
  void begin();
  // Queries for the next page and for a stream. `version`: the store's.
  std::string page_query(std::uint64_t version) const;
  std::string stream_query(std::uint64_t version) const;

  void add(kube::ListPage&& page);
  // Of its first page.
  std::uint64_t version() const { return version_; }
  bool has_next_page() const { return !continue_token_.empty(); }
  // Not a bookmark.
  void add(kube::WatchEvent&& event);
  std::vector<ObjectPtr> take_items();

  // The token expired between two pages, and it would expire again: asks for all in one answer.
  void token_expired() {
    if (has_next_page()) paged_ = false;
  }
  // The answer was too large or incomplete. True: it was too large, and the list now asks for less
  // at a time.
  bool shrink(bool too_large);
  // The list is complete. The next one must not be older.
  void end();

 private:
  Freshness freshness_ = Freshness::kAny;
  bool is_streamed_;
  bool paged_ = true;  // false: all in one answer
  int page_limit_;
  int broken_streams_ = 0;
  std::string continue_token_;
  std::uint64_t version_ = 0;
  std::vector<ObjectPtr> items_;
  std::unordered_map<std::string, ObjectPtr> streamed_;
};

}  // namespace holdfast::cache
