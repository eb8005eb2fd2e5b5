#include "operator/observe/window_keeper.h"

#include <algorithm>

namespace holdfast::observe {
namespace {

// Many shards ask at once, and the result for the first is recent enough for all.
constexpr std::chrono::milliseconds kYoungEnough{100};
constexpr std::chrono::minutes kWarnEvery{5};

}  // namespace

void WindowKeeper::carry(const std::string& text) {
  for (const SilentSubject& subject : decode_windows(text)) {
    const std::size_t slash = subject.subject.find('/');
    const auto kind = kinds_.find(subject.subject.substr(0, slash));
    if (slash == std::string::npos || kind == kinds_.end()) continue;
    const std::string name = subject.subject.substr(slash + 1);
    const auto& mark_here = kind->second.mark_here;
    const std::uint64_t mark = mark_here ? mark_here(name, subject.mark) : subject.mark;
    kind->second.tracker.carry(name, mark, subject.silent, kind->second.clock(name),
                               kind->second.mark_proves_silence);
  }
}

std::string WindowKeeper::record(int shard) {
  if (collected_at_ == SteadyTime{} || loop_.now() - collected_at_ > kYoungEnough) collect();
  const auto found = found_.find(shard);
  if (found == found_.end()) return "";
  const std::size_t left_out = found->second.size() - std::min(found->second.size(), kMostSubjects);
  if (left_out > 0 && (warned_at_ == SteadyTime{} || loop_.now() - warned_at_ > kWarnEvery)) {
    warned_at_ = loop_.now();
    log_.warn(
        "a shard has more silent subjects than its Lease can keep; if this process dies, "
        "the windows of the least silent ones start again",
        {{"shard", std::to_string(shard)}, {"left_out", std::to_string(left_out)}});
  }
  return encode_windows(found->second);
}

void WindowKeeper::collect() {
  collected_at_ = loop_.now();
  found_.clear();
  for (const auto& kind : kinds_) {
    const auto note = [&](const std::string& name, std::uint64_t mark, Duration silent) {
      const Wanted wanted = kind.second.wanted(name, silent);
      for (const int shard : wanted.shards) {
        found_[shard].push_back({kind.first + "/" + name, mark, std::min(silent, wanted.most)});
      }
    };
    kind.second.tracker.for_each_silent(kind.second.record_from, kind.second.clock, note);
  }
}

}  // namespace holdfast::observe
