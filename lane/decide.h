// What to write next for a batch/v1 Job of the lane. Pure.
//
// Every write has a precondition, and the next decision starts from what the API server has. So the
// process may die between any two writes:
//
//   1. the Job's status: the name of its DurableJob                 compare-and-swap
//   2. the DurableJob, owned by the Job                             the name is the Job's alone
//   3. the Job's status: the DurableJob's UID, counts, conditions   compare-and-swap, many times
//
// Step 1 is left out at the first try if the name is the Job's own. Then a live read of the Job comes
// before step 2. So only a replica that has just seen the Job as it is creates anything. Once step 3
// has the UID, nothing is created any more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lane/change.h"
#include "lane/durable_job.h"
#include "lane/mirror.h"
#include "reconciler/observed.h"

namespace holdfast::lane {

// The DurableJob with the name that matters: the recorded one, else first_name().
struct DurableView {
  const reconciler::Job* job = nullptr;
  std::string owner_uid;
  Source source;  // reconciler::kBatchJobAnnotation
};

struct View {
  const BatchJob& job;
  std::optional<DurableView> durable = std::nullopt;  // none: the cache has none
  // A live read has shown that the DurableJob of the record is not there.
  bool is_gone = false;
  // This process has tried to create it. It may be there, even if no answer said so.
  bool tried = false;
  // A live read has shown that a foreign object has that name.
  bool name_taken = false;
  // The API server can never create the DurableJob; why.
  std::optional<std::string> refusal = std::nullopt;
  // Pods of a DurableJob that is gone may still run.
  bool pods_left = false;
  // The fields that this process had to leave out of a change, and that change.
  struct Refused {
    Source wanted;
    Refusals fields;
  };
  std::optional<Refused> refused = std::nullopt;
  // How many pods of its runs are Ready and stay; none: that is not known.
  std::optional<std::int64_t> ready = std::nullopt;
  // A write that only says how many are Ready comes after this time at the earliest.
  Duration ready_pause{};
  std::string shard_label = {};  // of the Job
  // The operator keeps its rights in the namespace for as long as the DurableJob is there.
  bool keeps_rights = true;
  // While it holds, the API server might take a DurableJob that it has to refuse.
  reconciler::GuardView guard = {};
  Time now{};
};

struct Event {
  bool warning = false;
  std::string reason;
  std::string note;
};
struct StatusWrite {
  Json metadata;
  Json status;
};
struct Creation {
  std::string name;
  std::string body;
};
// If the API server refuses the fields together, each is sent by itself: one_by_one(). Then, or if
// some need no try, `recorded` stays until the Job's status reports it: View::refused.
struct Patch {
  std::string name;
  std::uint64_t version = 0;
  Source recorded;
  Source wanted;
  Json fields = Json::object();
  Refusals refused;
};

// Performed in this order. A creation without a status needs a live read of the Job first: it must
// be as it was for the decision.
struct Decision {
  std::optional<Patch> patch;  // of the DurableJob
  std::optional<StatusWrite> status;
  std::optional<Creation> creation;
  std::vector<Event> events;  // once the writes have succeeded
  // Read the DurableJob of the record live, and decide again.
  bool look = false;
  // It waits for the pods of a DurableJob that is gone, for a name, or for the guard.
  std::optional<Duration> wake_after;
};

Decision decide(const View& view);

// True: the Job owns this DurableJob, but it does not run the Job, so it has to go. A replica may
// create it after a long pause: under an obsolete name, or after the Job's end.
bool is_stray(const BatchJob& job, const reconciler::Job& durable);

}  // namespace holdfast::lane
