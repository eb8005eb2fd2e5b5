#include "reconciler/job/kstatus.h"

#include "reconciler/job/conditions.h"

namespace holdfast::reconciler {

void report_kstatus(Status& status, Time now) {
  const bool works = !is_terminal(status.phase) && status.phase != Phase::kSuspended;
  if (works && status.waiting) {
    set_condition(status, "Reconciling", true, status.waiting->reason.text(),
                  status.waiting->message, now);
  } else {
    set_condition(status, "Reconciling", false, to_string(status.phase), "", now);
  }
}

}  // namespace holdfast::reconciler
