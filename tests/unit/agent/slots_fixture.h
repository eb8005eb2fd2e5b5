// The common part of the tests of Slots: one worker, a manual clock, and what the API server says.
// D is 60 s, so that all its parts are whole seconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agent/serve/slots.h"
#include "core/agent_protocol.h"
#include "tests/support/only.h"

namespace holdfast::agent::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline const std::string kWorker = "pool-abcde/uid-of-pod";
inline const std::string kLife = "life-1";
inline constexpr seconds kLeaseDuration{60};
inline constexpr seconds kTwoThirds{40};
inline constexpr seconds kKillTime{49};  // 49/60 D
inline constexpr seconds kFiveSixths{50};

inline AttemptId attempt(const std::string& job, std::int64_t number = 1) {
  return {"uid-of-" + job, 0, number};
}

inline const AttemptId kA = attempt("a"), kB = attempt("b"), kC = attempt("c");

inline WorkEntry run(const AttemptId& id) { return {id, "name", false}; }
inline WorkEntry stop(const AttemptId& id) { return {id, "name", true}; }

inline WorkView work_lease(std::int64_t seq, std::vector<WorkEntry> entries,
                           const std::string& uid = "work-1") {
  return {uid, "", Work{seq, false, std::move(entries)}};
}

// By this process, or by another one.
inline WorkerReport marked(const std::string& life) {
  WorkerReport report;
  report.life = life;
  return report;
}

inline WorkerView worker_lease(WorkerReport report = {}, const std::string& holder = kWorker,
                               const std::string& uid = "worker-1") {
  return {uid, holder, std::move(report)};
}

// Either Lease's.
inline LeaseRefusal no_lease(LeaseRefusal::Kind kind) { return {kind, "because"}; }

inline JobReading job(JobReading::Kind kind) {
  JobReading reading;
  reading.kind = kind;
  reading.why = "because";
  return reading;
}

inline const Answer* answer_to(const WorkerReport& report, const AttemptId& id) {
  for (const Answer& answer : report.answers) {
    if (answer.id == id) return &answer;
  }
  return nullptr;
}

class SlotsTest : public ::testing::Test {
 protected:
  SteadyTime at(Duration since_start) const { return SteadyTime(seconds(1000)) + since_start; }

  void make(int count = 2) { make(count, usual_stop_grace, seconds(30)); }
  void make(int count, seconds stop_grace, seconds pod_grace) {
    slots.emplace(SlotSettings{.duration = kLeaseDuration,
                               .slots = count,
                               .holder = kWorker,
                               .life = kLife,
                               .stop_grace = stop_grace,
                               .pod_grace = pod_grace},
                  random);
    now = at(seconds(0));
  }
  // Has renewed at 0, and knows an empty work Lease.
  void serve(int count = 2) { serve(count, usual_stop_grace, seconds(30)); }
  void serve(int count, seconds stop_grace, seconds pod_grace) {
    make(count, stop_grace, pod_grace);
    ASSERT_TRUE(slots->begin(now).get_worker);
    ASSERT_TRUE(slots->worker_answered(now, worker_lease()).get_work);
    const SlotOrders orders = slots->work_answered(now, work_lease(0, {}));
    ASSERT_TRUE(orders.put);
    slots->worker_answered(now, worker_lease(*orders.put));
    ASSERT_EQ(slots->phase(), Slots::Phase::kServing);
  }
  SlotOrders watch(std::vector<WorkEntry> entries) {
    return slots->watched(now, work_lease(++seq, std::move(entries)));
  }
  // The pod was deleted with this grace.
  SlotOrders mark(std::vector<WorkEntry> entries, seconds grace) {
    WorkView reading = work_lease(++seq, std::move(entries));
    reading.work->draining = true;
    reading.work->end = PodEnd{Time(seconds(9000)), grace};
    return slots->watched(now, reading);
  }
  SlotOrders current(const AttemptId& id) {
    return slots->looked(now, id, job(JobReading::Kind::kCurrent));
  }
  // Its entry comes, the job is looked at, and the attempt begins.
  void begin(std::vector<WorkEntry> entries, const AttemptId& id) {
    ASSERT_FALSE(watch(std::move(entries)).looks.empty());
    ASSERT_EQ(current(id).starts.size(), 1U);
  }
  // Serves, and attempt a runs in slot 0.
  void run_a() {
    serve();
    begin({run(kA)}, kA);
  }
  void run_a_and_b() {
    serve();
    begin({run(kA), run(kB)}, kA);
    current(kB);
  }
  // Attempt a runs, and SIGTERM has come.
  void run_a_until_sigterm(seconds stop_grace, seconds pod_grace) {
    serve(2, stop_grace, pod_grace);
    begin({run(kA)}, kA);
    acknowledge(*slots->asked_to_end(now).put);
  }
  // The command ends, and its last process dies.
  SlotOrders end(int slot, int exit_code = 0, const std::string& result = "") {
    slots->happened(now, slot, Ended{exit_code, result});
    return slots->happened(now, slot, AllDead{});
  }
  // Slot 0 gets this order then, and not a millisecond before.
  ::testing::AssertionResult gets_at(std::vector<int> SlotOrders::*order, seconds since_start) {
    now = at(since_start) - milliseconds(1);
    if (!(slots->woke(now).*order).empty()) return ::testing::AssertionFailure() << "too early";
    now = at(since_start);
    if (slots->woke(now).*order == std::vector<int>{0}) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "not yet";
  }
  ::testing::AssertionResult terminates_at(seconds since_start) {
    return gets_at(&SlotOrders::terminate, since_start);
  }
  ::testing::AssertionResult kills_at(seconds since_start) {
    return gets_at(&SlotOrders::kill, since_start);
  }
  // Obeys it until it wants to renew. Reads of the work Lease find nothing new.
  WorkerReport put_of(SlotOrders orders, const std::vector<WorkEntry>& entries) {
    for (;;) {
      if (orders.get_work) orders = slots->work_answered(now, work_lease(seq, entries));
      if (orders.put) return *orders.put;
      if (orders.exit_code || orders.wake_at <= now) {
        ADD_FAILURE() << "no renewal";
        return {};
      }
      now = orders.wake_at;
      orders = slots->woke(now);
    }
  }
  WorkerReport next_put(const std::vector<WorkEntry>& entries) {
    return put_of(slots->woke(now), entries);
  }
  SlotOrders acknowledge(const WorkerReport& report) {
    return slots->worker_answered(now, worker_lease(report));
  }

  seconds usual_stop_grace{8};
  SeededRandom random{7};
  std::optional<Slots> slots;
  SteadyTime now{};
  std::int64_t seq = 0;
};

}  // namespace holdfast::agent::testing
