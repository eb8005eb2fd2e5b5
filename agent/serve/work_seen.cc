#include "agent/serve/work_seen.h"

#include <utility>

#include "agent/base/lease_times.h"

namespace holdfast::agent {
namespace {

// The watch may be as quiet as this, without a read between two renewals. So attempts that end one
// after the other do not cost a read each.
Duration may_be_quiet(Duration lease) { return retry_pause(lease); }

}  // namespace

void WorkSeen::begins(const std::string& uid) {
  uid_ = uid;
  seq_ = -1;
}

bool WorkSeen::is_news(const WorkView& view) const {
  return view.work && (view.uid != uid_ || is_newer(*view.work));
}

bool WorkSeen::is_set_back(const Work& work, std::optional<SteadyTime> asked) const {
  if (work.seq == seq_) return encode_work(work) != words_;
  return work.seq < seq_ && asked && *asked > obeyed_;
}

void WorkSeen::obeys(SteadyTime now, const Work& work) {
  seq_ = work.seq;
  words_ = encode_work(work);
  obeyed_ = now;
}

bool WorkSeen::not_understood(const std::string& why) {
  return std::exchange(not_understood_, why) != why;
}

bool WorkSeen::heard_lately(SteadyTime now, std::optional<SteadyTime> renewed,
                            Duration lease) const {
  if (!heard_ || uid_.empty()) return false;
  const bool since_renewal = !renewed || *heard_ > *renewed;
  return now - *heard_ <= (since_renewal ? lease / 3 : may_be_quiet(lease));
}

}  // namespace holdfast::agent
