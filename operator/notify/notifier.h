// Delivers the outboxes of this replica's jobs. Each target has a line of its own, with few tries
// at a time. So a target that hangs delays no job and no other target. In a line the namespaces
// take turns, so that many events of one do not hold up the others. A failed try is repeated after
// reconciler::next_notify_pause(). No try needs a record but the outbox itself.
//
// The controller of jobs writes down what was delivered, as part of its own status writes. If that
// write is lost, the event is delivered again: at least once.
//
// Loop only. Destroy it when no call of the poster is open any more, or drop the poster's answers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/controller/fair_line.h"
#include "core/file_reader.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"
#include "core/server_clock.h"
#include "operator/jobs/courier.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/ownership.h"
#include "operator/notify/message.h"
#include "operator/notify/poster.h"
#include "operator/notify/targets.h"

namespace holdfast::notify {

// Tries of one target at a time, and of one namespace among them.
inline constexpr int kTriesAtOnce = 4;
inline constexpr int kTriesOfNamespace = 2;

class Notifier : public jobs::Courier {
 public:
  struct Dependencies {
    Loop& loop;
    Random& random;
    Log log;
    const ServerClock& clock;
    jobs::Telemetry& telemetry;
    // Whether this replica holds what decides the job's shard.
    std::function<bool(const std::string& shard_key)> holds;
    // Queues the job.
    std::function<void(const std::string& key)> look_at;
    Poster& poster;
    const FileReader& files;
  };
  Notifier(Dependencies dependencies, Targets targets);
  ~Notifier() override;

  reconciler::NotifyView of(const codecs::CachedJob& job) const override;
  void deliver(const codecs::CachedJob& job) override;
  void forget(const std::string& key) override;

  // Begins no new tries.
  void stop();

  // Events that wait for each target, in the jobs of this replica.
  std::map<std::string, std::size_t> waiting() const;

 private:
  struct Delivery {
    enum class State { kInLine, kTrying, kPausing, kDone };
    State state = State::kInLine;
    TimerId timer = 0;
    std::optional<reconciler::DeliveryView> result;  // of the last try
  };
  struct JobRecord {
    JobName job;
    std::string shard_key;
    std::map<std::int64_t, reconciler::OutboxEntry> entries;              // by number
    std::map<std::pair<std::int64_t, std::string>, Delivery> deliveries;  // and target
  };
  // The same by value: the record may be gone when its turn or its answer comes.
  struct Ticket {
    std::string key;  // namespace/name
    std::string namespace_;
    std::string uid;
    std::int64_t number = 0;
    std::string target;
  };
  struct Line {
    // The outboxes bound what waits.
    controller::FairLine<Ticket> waiting{std::numeric_limits<int>::max() / 2, kTriesOfNamespace};
    int trying = 0;
    SteadyTime closed_until{};  // the target asked for a pause
    TimerId timer = 0;
  };

  Delivery* find(const Ticket& ticket, JobRecord** record = nullptr);
  void drop(JobRecord& record, const std::function<bool(std::int64_t, const std::string&)>& goes);
  void enqueue(const Ticket& ticket);
  void work(const std::string& target);
  // False: there is nothing to send, or it cannot be sent.
  bool begin_if_due(const Ticket& ticket);
  bool begin(const Ticket& ticket, JobRecord& record, Delivery& delivery);
  void ended(const Ticket& ticket, const Result<Answer>& answer);
  struct Failure {
    std::string kind;    // what tenants read in the job: neither host nor address
    std::string detail;  // for the operator's log
  };
  static Failure failure_of(const Result<Answer>& answer);
  void failed(const Ticket& ticket, JobRecord& record, Delivery& delivery, const Failure& failure,
              std::optional<Duration> obeyed);
  void log_failure(const Ticket& ticket, const std::string& why, Duration next);
  Result<Message> message_for(const JobRecord& record, const reconciler::OutboxEntry& entry,
                              const Target& target) const;
  Time now() const { return deps_.clock.now(deps_.loop.now()); }

  Dependencies deps_;
  const Targets targets_;
  std::map<std::string, JobRecord> jobs_;     // by key
  std::map<std::string, Line> lines_;         // by target
  std::map<std::string, SteadyTime> logged_;  // when a failure of the target was logged last
  bool stopped_ = false;
  // Answers after the end find it gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::notify
