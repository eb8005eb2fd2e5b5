#include "operator/jobs/settle_line.h"

#include <utility>

namespace holdfast::jobs {

void SettleLine::stop() {
  line_.clear();
  waiting_.clear();
  loop_.cancel(std::exchange(timer_, 0));
}

void SettleLine::add(const std::string& key) {
  if (line_.size() >= kMost || turns_.contains(key) || !waiting_.insert(key).second) return;
  line_.push_back(key);
  wait();
}

void SettleLine::wait() {
  if (timer_ != 0 || line_.empty()) return;
  timer_ = loop_.call_after(kBetweenTurns, [this] {
    timer_ = 0;
    if (line_.empty()) return;
    std::string key = std::move(line_.front());
    line_.pop_front();
    waiting_.erase(key);
    turns_.insert(key);
    wait();
    look_(key);
  });
}

}  // namespace holdfast::jobs
