// One function for each kind of phase. Each fills the decision; decide() picks one and tidies up
// after it. Internal to reconciler/.
#pragma once

#include "reconciler/edges.h"

namespace holdfast::reconciler {

// Collects what a phase decides.
class Plan {
 public:
  explicit Plan(const Context& context) : context_(context) {}

  // The status write, if it says anything new.
  void write(WriteStatus status);
  // A write of `waiting`, node or start alone: left out while the last write is too young, unless
  // it is needed at once.
  void inform(Status status, bool at_once = false);
  void create_pod();
  void await_creation() { decision_.awaits_creation = true; }
  void confirm() { decision_.confirm = true; }
  void wake_in(Duration delay);
  void wake_at(Time when) { wake_in(when - context_.now); }

  Decision& decision() { return decision_; }
  // The status as it will stand after the writes so far.
  const Status& status() const { return next_ ? *next_ : context_.job.status; }

 private:
  const Context& context_;
  Decision decision_;
  std::optional<Status> next_;
};

void decide_running(const Context& context, Plan& plan);
// (none), Pending, Backoff: the next attempt may start.
void decide_ready(const Context& context, Plan& plan);
void decide_suspended(const Context& context, Plan& plan);
void decide_cancelling(const Context& context, Plan& plan);
void decide_finished(const Context& context, Plan& plan);

}  // namespace holdfast::reconciler
