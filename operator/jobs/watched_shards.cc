#include "operator/jobs/watched_shards.h"

#include <algorithm>
#include <utility>

#include "reconciler/shards.h"

namespace holdfast::jobs {

WatchedShards::WatchedShards(Dependencies dependencies, int shards,
                             std::vector<std::string> namespaces)
    : deps_(std::move(dependencies)), shards_(shards), since_(static_cast<std::size_t>(shards)) {
  if (namespaces.empty()) namespaces.emplace_back();
  for (std::string& name : namespaces) watched_.push_back({std::move(name)});
  for (const Part& part : deps_.parts) {
    part.informer.on_progress([this] { on_progress(); });
  }
  widen();
}

WatchedShards::~WatchedShards() {
  deps_.loop.cancel(linger_);
  deps_.loop.cancel(again_);
}

void WatchedShards::want(std::set<int> shards) {
  const bool has_lost =
      !std::includes(shards.begin(), shards.end(), wanted_.begin(), wanted_.end());
  wanted_ = std::move(shards);
  list_more();
  const bool has_more =
      !std::includes(wanted_.begin(), wanted_.end(), selected_.begin(), selected_.end());
  if (has_lost || !has_more) deps_.loop.cancel(std::exchange(linger_, 0));
  if (has_more && linger_ == 0) linger();
}

// A list under way would begin again. Those that are wanted meanwhile are the next one's.
void WatchedShards::list_more() {
  deps_.loop.cancel(std::exchange(again_, 0));
  if (std::includes(selected_.begin(), selected_.end(), wanted_.begin(), wanted_.end())) return;
  if (!lists()) return widen();
  again_ = deps_.loop.call_after(kPatience, [this] {
    again_ = 0;
    list_more();
  });
}

void WatchedShards::linger() {
  linger_ = deps_.loop.call_after(kLinger, [this] {
    linger_ = 0;
    if (lists()) return linger();
    narrow();
  });
}

// A namespace whose list hangs holds up no other.
bool WatchedShards::lists() const {
  const auto lists = [this](const Watched& one) { return this->lists(one.namespace_); };
  return deps_.loop.now() - widened_at_ < kPatience
             ? std::any_of(watched_.begin(), watched_.end(), lists)
             : std::all_of(watched_.begin(), watched_.end(), lists);
}

bool WatchedShards::lists(const std::string& namespace_) const {
  return std::any_of(deps_.parts.begin(), deps_.parts.end(),
                     [&](const Part& part) { return part.informer.widening(namespace_); });
}

bool WatchedShards::watches(const cache::Informer& informer) const {
  return std::any_of(deps_.parts.begin(), deps_.parts.end(),
                     [&](const Part& part) { return &part.informer == &informer; });
}

// All parts are widened together.
std::uint64_t WatchedShards::widened(const std::string& namespace_) const {
  std::uint64_t least = widenings_;
  for (const Part& part : deps_.parts) {
    least = std::min(least, part.informer.widened(namespace_));
  }
  return least;
}

void WatchedShards::widen() {
  ++widenings_;
  widened_at_ = deps_.loop.now();
  for (const int shard : wanted_) {
    if (!selected_.insert(shard).second) continue;
    since_[static_cast<std::size_t>(shard)] = widenings_;
  }
  for (const Part& part : deps_.parts) part.informer.widen(part.selector(selected_, shards_));
}

void WatchedShards::narrow() {
  // What is wanted may not be selected yet: the next list brings it.
  std::erase_if(selected_, [this](const int shard) { return wanted_.count(shard) == 0; });
  for (int shard = 0; shard < shards_; ++shard) {
    if (selected_.count(shard) == 0) since_[static_cast<std::size_t>(shard)] = 0;
  }
  for (const Part& part : deps_.parts) {
    const auto keep = [&](const kube::ObjectPtr& object) {
      const auto shard = reconciler::labelled_shard(part.label(object), shards_);
      return !shard || selected_.count(*shard) != 0;
    };
    for (const kube::ObjectPtr& dropped :
         part.informer.narrow(part.selector(selected_, shards_), keep)) {
      part.on_drop(dropped);
    }
  }
}

bool WatchedShards::read(int shard, const std::string& namespace_) const {
  const std::uint64_t since = since_[static_cast<std::size_t>(shard)];
  return since != 0 && widened(namespace_) >= since;
}

bool WatchedShards::read(int shard) const {
  const auto is_read = [&](const Watched& one) { return read(shard, one.namespace_); };
  const auto in_trouble = [&](const Watched& one) {
    return std::any_of(deps_.parts.begin(), deps_.parts.end(), [&](const Part& part) {
      return !part.informer.trouble(one.namespace_).empty();
    });
  };
  return std::any_of(watched_.begin(), watched_.end(), is_read) &&
         std::all_of(watched_.begin(), watched_.end(),
                     [&](const Watched& one) { return is_read(one) || in_trouble(one); });
}

std::size_t WatchedShards::read_shards() const {
  return static_cast<std::size_t>(std::count_if(selected_.begin(), selected_.end(),
                                                [this](const int shard) { return read(shard); }));
}

void WatchedShards::on_progress() {
  for (Watched& one : watched_) {
    const std::uint64_t before = std::exchange(one.widened, widened(one.namespace_));
    if (before == one.widened) continue;
    std::set<int> now_read;
    for (const int shard : selected_) {
      const std::uint64_t since = since_[static_cast<std::size_t>(shard)];
      if (since > before && since <= one.widened) now_read.insert(shard);
    }
    if (!now_read.empty()) deps_.on_read(now_read, one.namespace_);
  }
  if (again_ == 0 || lists()) return;
  // In a turn of its own, because this runs within the informer.
  deps_.loop.cancel(again_);
  again_ = deps_.loop.call_after(Duration::zero(), [this] {
    again_ = 0;
    list_more();
  });
}

}  // namespace holdfast::jobs
