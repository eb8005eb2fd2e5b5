#include "client/cache/reflector_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::cache {

void ReflectorList::begin() {
  items_.clear();
  streamed_.clear();
  continue_token_.clear();
}

std::string ReflectorList::page_query(std::uint64_t version) const {
  return list_query(freshness_, version, continue_token_, paged_ ? page_limit_ : 0);
}

std::string ReflectorList::stream_query(std::uint64_t version) const {
  return cache::stream_query(freshness_, version);
}

void ReflectorList::add(kube::ListPage&& page) {
  if (continue_token_.empty()) version_ = page.version;
  items_.insert(items_.end(), std::make_move_iterator(page.items.begin()),
                std::make_move_iterator(page.items.end()));
  continue_token_ = std::move(page.continue_token);
}

void ReflectorList::add(kube::WatchEvent&& event) {
  std::string key = event.object->key();
  if (event.type == kube::WatchEventType::kDeleted) {
    streamed_.erase(key);
  } else {
    streamed_[std::move(key)] = std::move(event.object);
  }
}

std::vector<ObjectPtr> ReflectorList::take_items() {
  items_.reserve(items_.size() + streamed_.size());
  for (auto& [key, object] : streamed_) items_.push_back(std::move(object));
  streamed_.clear();
  return std::exchange(items_, {});
}

// Some servers ignore the limit at version 0 and answer everything at once.
bool ReflectorList::shrink(bool too_large) {
  if (freshness_ == Freshness::kAny || !paged_) {
    freshness_ = Freshness::kConsistent;
    paged_ = true;
    return too_large;
  }
  if (!too_large || page_limit_ == 1) return false;
  page_limit_ = std::max(1, page_limit_ / 10);
  return true;
}

void ReflectorList::end() {
  paged_ = true;
  broken_streams_ = 0;
  freshness_ = Freshness::kNotOlder;
}

}  // namespace holdfast::cache
