#include "operator/jobs/job_stop.h"

#include <utility>

namespace holdfast::jobs {

JobStop::JobStop(Loop& loop, controller::ReconcilePool& pool, PodCreations& creations,
                 std::function<void()> cancel)
    : loop_(loop), pool_(pool), creations_(creations), cancel_(std::move(cancel)) {}

JobStop::~JobStop() {
  loop_.cancel(limit_timer_);
  loop_.cancel(grace_timer_);
}

void JobStop::begin(std::function<void()> idle) {
  stopping_ = true;
  idle_ = std::move(idle);
  limit_timer_ = loop_.call_after(kHandOverLimit, [this] { end_work(); });
  creations_.hand_all_over();
  on_creations();
}

// A reconcile in flight may begin a creation, and one that has ended puts its refusal on record in
// the next reconcile. A reconcile that hangs is not waited for.
void JobStop::on_creations() {
  if (!stopping_ || handed_over_) return;
  if (!creations_.empty()) return loop_.cancel(std::exchange(grace_timer_, 0));
  if (grace_timer_ == 0) {
    grace_timer_ = loop_.call_after(kStopGrace, [this] { end_work(); });
  }
  pool_.when_idle([this] {
    if (creations_.empty()) end_work();
  });
}

void JobStop::end_work() {
  if (std::exchange(handed_over_, true)) return;
  loop_.cancel(std::exchange(limit_timer_, 0));
  loop_.cancel(std::exchange(grace_timer_, 0));
  grace_timer_ = loop_.call_after(kStopGrace, [this] { cancel_(); });
  to_end_ = 2;
  pool_.stop([this] { one_ended(); });
  creations_.stop([this] { one_ended(); });
}

void JobStop::one_ended() {
  if (--to_end_ > 0) return;
  loop_.cancel(grace_timer_);
  idle_();
}

}  // namespace holdfast::jobs
