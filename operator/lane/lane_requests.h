// The requests of one reconcile of a batch/v1 Job that Holdfast runs. All writes are by
// compare-and-swap, so nothing breaks if two replicas work on one Job.
//
// A request records its result in the Job's LaneMemory. If that changes the next decision, the Job
// is looked at again.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/controller/writer.h"
#include "client/kube/client.h"
#include "core/task.h"
#include "lane/decide.h"
#include "operator/events/events.h"
#include "operator/lane/batch_job_codec.h"
#include "operator/lane/lane_facts.h"

namespace holdfast::lane_controller {

// What this process knows of one Job beside the caches.
struct LaneMemory {
  std::uint64_t job_version = 0;          // of its own last write of the Job
  std::uint64_t durable_version = 0;      // of the DurableJob
  std::optional<SteadyTime> waits_since;  // for the caches to show these
  std::string created;                    // UID of the DurableJob that this process created
  bool tried = false;                     // to create one; it may be there
  std::string taken;                      // a name that a foreign object has
  SteadyTime taken_until{};               // then look again
  std::optional<std::string> refusal;
  std::optional<lane::View::Refused> refused;
  std::optional<SteadyTime> last_write;  // of the Job's status
  // The DurableJob, as read: it has ended, and no watch shows it, because it is settled.
  codecs::JobPtr settled;
  std::string gone;  // UID of the recorded DurableJob, if a live read has shown that it is gone
};
using LaneMemoryPtr = std::shared_ptr<LaneMemory>;

class LaneRequests {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    events::EventSink& events;
    const controller::Gate& gate;
    const LaneFacts& facts;
    // Look at the Job with this key again.
    std::function<void(const std::string& key)> look_at;
    // The DurableJob with this key is there, and the cache lacks it.
    std::function<void(const std::string& key)> look_for;
  };
  explicit LaneRequests(Dependencies dependencies)
      : deps_(std::move(dependencies)), writer_(deps_.client, deps_.gate) {}

  // The Job; of a long one the cache has only the name.
  Task<Result<lane::BatchJob>> whole(BatchJobPtr cached);
  // Pods of the recorded DurableJob have not ended. The cache may have none of them, because they
  // are of another shard than the Job.
  Task<Result<bool>> pods_left(std::string ns, std::string durable_uid);
  Task<Result<>> delete_strays(const lane::BatchJob& job, controller::Gate::Claim claim);
  Task<Result<>> perform(const lane::BatchJob& job, const lane::Decision& decision,
                         LaneMemoryPtr memory, controller::Gate::Claim claim);

 private:
  Task<Result<>> write_status(const lane::BatchJob& job, const lane::StatusWrite& write,
                              LaneMemoryPtr memory, controller::Gate::Claim claim);
  Task<Result<>> patch(const lane::BatchJob& job, const lane::Patch& patch, LaneMemoryPtr memory,
                       controller::Gate::Claim claim);
  // Sends these fields, and raises `version` to the answer's.
  Task<Result<>> send(const lane::BatchJob& job, std::string name, std::uint64_t& version,
                      lane::Source source, Json fields, LaneMemory& memory,
                      controller::Gate::Claim claim);
  Task<Result<>> create(const lane::BatchJob& job, const lane::Creation& creation,
                        LaneMemoryPtr memory, controller::Gate::Claim claim);
  Task<Result<>> is_current(const lane::BatchJob& job);
  Result<> await_watch(const lane::BatchJob& job, const JsonView& live, LaneMemory& memory);
  Task<Result<>> look(const lane::BatchJob& job, LaneMemoryPtr memory);
  void record(const lane::BatchJob& job, const lane::Event& event);
  void look_again(const lane::BatchJob& job) { deps_.look_at(job.namespace_ + "/" + job.name); }

  Dependencies deps_;
  controller::Writer writer_;
};

}  // namespace holdfast::lane_controller
