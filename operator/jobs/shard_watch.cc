#include "operator/jobs/shard_watch.h"

#include <algorithm>
#include <utility>

namespace holdfast::jobs {

ShardWatch::ShardWatch(Dependencies dependencies, int shards, std::vector<std::string> namespaces)
    : deps_(std::move(dependencies)), shards_(shards), since_(static_cast<std::size_t>(shards)) {
  if (namespaces.empty()) namespaces.emplace_back();
  for (std::string& name : namespaces) watched_.push_back({std::move(name)});
  deps_.objects.on_progress([this] { on_progress(); });
  widen();
}

ShardWatch::~ShardWatch() {
  deps_.loop.cancel(linger_);
  deps_.loop.cancel(again_);
}

void ShardWatch::want(std::set<int> shards) {
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
void ShardWatch::list_more() {
  deps_.loop.cancel(std::exchange(again_, 0));
  if (std::includes(selected_.begin(), selected_.end(), wanted_.begin(), wanted_.end())) return;
  if (!lists()) return widen();
  again_ = deps_.loop.call_after(kPatience, [this] {
    again_ = 0;
    list_more();
  });
}

void ShardWatch::linger() {
  linger_ = deps_.loop.call_after(kLinger, [this] {
    linger_ = 0;
    if (lists()) return linger();
    narrow();
  });
}

// A namespace whose list hangs holds up no other.
bool ShardWatch::lists() const {
  const auto lists = [this](const Watched& one) { return deps_.objects.widening(one.namespace_); };
  return deps_.loop.now() - widened_at_ < kPatience
             ? std::any_of(watched_.begin(), watched_.end(), lists)
             : std::all_of(watched_.begin(), watched_.end(), lists);
}

void ShardWatch::widen() {
  ++widenings_;
  widened_at_ = deps_.loop.now();
  for (const int shard : wanted_) {
    if (!selected_.insert(shard).second) continue;
    since_[static_cast<std::size_t>(shard)] = widenings_;
  }
  deps_.objects.widen(deps_.selector(selected_));
}

void ShardWatch::narrow() {
  selected_ = wanted_;
  for (int shard = 0; shard < shards_; ++shard) {
    if (selected_.count(shard) == 0) since_[static_cast<std::size_t>(shard)] = 0;
  }
  std::vector<kube::ObjectPtr> dropped =
      deps_.objects.narrow(deps_.selector(selected_), [this](const kube::ObjectPtr& object) {
        const std::optional<int> shard = deps_.shard_of(object);
        return !shard || selected_.count(*shard) != 0;
      });
  if (!deps_.on_drop) return deps_.objects.report_gone(std::move(dropped));
  for (const kube::ObjectPtr& object : dropped) deps_.on_drop(object);
}

bool ShardWatch::read(int shard, const std::string& namespace_) const {
  const std::uint64_t since = since_[static_cast<std::size_t>(shard)];
  return since != 0 && deps_.objects.widened(namespace_) >= since;
}

bool ShardWatch::read(int shard) const {
  const auto is_read = [&](const Watched& one) { return read(shard, one.namespace_); };
  return std::any_of(watched_.begin(), watched_.end(), is_read) &&
         std::all_of(watched_.begin(), watched_.end(), [&](const Watched& one) {
           return is_read(one) || !deps_.objects.trouble(one.namespace_).empty();
         });
}

void ShardWatch::on_progress() {
  for (Watched& one : watched_) {
    const std::uint64_t before = std::exchange(one.widened, deps_.objects.widened(one.namespace_));
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
