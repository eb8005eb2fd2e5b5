// Collects the writes of one decision, and says when to decide again. It paces the writes of the
// status, and completes each of them. Internal to reconciler/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reconciler/job/decide.h"
#include "reconciler/run/context.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

class Plan {
 public:
  explicit Plan(const Context& context) : context_(context) {}

  // Adds the status write, if it changes anything.
  void write(WriteStatus status);
  // Adds a write that changes only `waiting`, node or start. Skipped soon after the last write,
  // unless `at_once`.
  void inform(Status status, bool at_once = false);
  // As inform(), for a job whose status lacks its shard, or has another one.
  void say_shard();
  void create_pod(const Run& run);
  void await_creation() { decision_.awaits_creation = true; }
  void await_permit() { decision_.awaits_permit = true; }
  void await_slots(std::int64_t runs, std::int64_t alone) {
    decision_.awaits_slots = runs;
    decision_.awaits_empty = alone;
  }
  // As write(), but later if the last write of this phase was too short a time ago. A write with
  // losses waits less, and a write with the last successes longer. If `is_urgent`, it does not
  // wait.
  void write_in_turn(WriteStatus status, bool is_urgent = false);
  // Asks for live reads of these runs (by index), and of the pods of these open creations (by
  // attempt). False: nothing is to be read, or this reconcile has read already. Then they are due
  // at once in the next one.
  bool confirm(const std::vector<std::int64_t>& runs,
               const std::vector<std::int64_t>& creations = {});
  // The same, for what cannot go on without these reads. False: there is nothing to read.
  bool looks_at(const std::vector<std::int64_t>& runs,
                const std::vector<std::int64_t>& creations = {});
  // Of a job without runs: of its last pod.
  void confirm_last() { decision_.confirm = true; }
  // An admitted job that does not start by itself, or whose pool does not exist, gives its permit
  // back. The status raises the attempt, so that nobody can still start the job with this
  // admission.
  void give_back_permit();
  void wake_in(Duration delay);
  void wake_at(Time when) { wake_in(when - context_.now); }

  Decision& decision() { return decision_; }
  // The status after the planned writes so far.
  const Status& status() const { return next_ ? *next_ : context_.job.status; }

 private:
  // The job is admitted, and with this status it does not use its permit.
  bool gives_back(const Status& after) const;

  const Context& context_;
  Decision decision_;
  std::optional<Status> next_;
};

}  // namespace holdfast::reconciler
