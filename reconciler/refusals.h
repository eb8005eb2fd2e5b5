// Decides what the API server's refusal of a write means, and when to try again. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// The pause before a refused write is tried again, after `refusals` earlier refusals: 5 to 30 s.
Duration retry_delay(int refusals);
// How long a repeated creation of a pod may take. An API server answers within a minute. Until then
// its admission webhooks may take 30 s each. A lost request never gets an answer, so only the
// second try waits this long. Nor is a request without an answer applied later than this.
inline constexpr seconds kCreationLimit{65};
// A creation that ended like this may still succeed. The answer is missing, or it says that the API
// server, or a proxy before it, got no answer itself. A webhook that fails is an answer.
bool may_still_create(const Error& error);

// Time or a newer view does not help: rights, a policy or a schema are in the way. It is logged,
// because the job cannot go on by itself.
bool person_must_help(ErrorCode code);

// True if a rule of the cluster forbids the deletion of a pod that has to stop. Then nobody waits
// for its end beyond the window: the pod is fenced, and a human must help. Any other failure may
// pass. Then the end of the job, or of its stage, waits for the pod.
bool deletion_is_refused(const Error& error);
// The old pod is deleted before the next one is created, unless deletions have failed for so long
// already. `failing_for`: none: none has failed.
bool may_start_beside_old_pod(const std::optional<Duration>& failing_for);

// A refused write of the job's Lease: only a human can fix the cause, so nothing else waits for it.
// Other failures end the reconcile, which is tried again.
bool lease_is_refused(ErrorCode code);

// The Event on the job for a refused write. None: the cause was no refusal, or the job's own end
// says it.
std::optional<Event> creation_event(CreationRefusal::Kind kind, const Error& error);
// `goes_on_without`: the next pod may start although this deletion failed.
std::optional<Event> deletion_event(const Error& error, bool goes_on_without);
std::optional<Event> lease_event(const Error& error);

// The API server calls the pod invalid: 422 with causes that all name a field. A policy's refusal
// and most webhooks' refusals name none. A proxy on the way may also answer 413.
bool puts_template_in_doubt(const Error& error);
// The answer to a dry run of the bare template: the API server itself refuses it. A webhook for
// templates may do so as well, and its message says that it is one.
bool confirms_doubt(const Error& error);

// The refusals of one attempt's pod.
class CreationRefusals {
 public:
  // `on_record`: the status already has a refusal of this kind, from an earlier process perhaps.
  void add(CreationRefusal::Kind kind, const Error& error, bool on_record, SteadyTime now);
  bool any() const { return count_ > 0; }
  // The last one, with its times as they are now; none: there was none.
  std::optional<CreationRefusal> last(SteadyTime now) const;

 private:
  CreationRefusal last_;
  int count_ = 0;
  SteadyTime at_{};
  SteadyTime retry_at_{};
};

}  // namespace holdfast::reconciler
