// The rules of each history of a worker, for the property test of Slots. It obeys the orders, and
// checks each of them against all readings and events so far.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/agent/slots_fixture.h"

namespace holdfast::agent::testing {

inline std::string text_of(const AttemptId& id) {
  return id.job_uid + "/" + std::to_string(id.attempt);
}

// Commands die of SIGKILL, and of nothing else unless the history says so; in every eighth history
// not even of that.
class SlotsChecks {
 protected:
  explicit SlotsChecks(std::uint64_t seed)
      : random_(seed),
        duration_(seconds(1 + static_cast<int>(random_.below(90)))),
        pod_grace_(seconds(5 + random_.below(60))),
        stop_grace_(seconds(1 + random_.below(40))),
        count_(1 + static_cast<int>(random_.below(6))),
        out_of_reach_(random_.below(8) == 0),
        slots_({.duration = duration_,
                .slots = count_,
                .holder = kWorker,
                .life = kLife,
                .stop_grace = stop_grace_,
                .pod_grace = pod_grace_},
               random_) {}

  struct Process {
    AttemptId id;
    bool asked = false, killed = false, ended = false;
  };
  struct Request {
    bool put = false, work = false;
    std::string text;
    int version = 0;
    SteadyTime sent{};
  };

  static bool HasFailure() { return ::testing::Test::HasFailure(); }

  // -- what it learns ----------------------------------------------------------------------------

  // It has read this of the work Lease, and must keep to it. `asked`: when it asked for that; none:
  // the watch has it.
  void knows(const WorkReading& reading, std::optional<SteadyTime> asked = std::nullopt) {
    if (fenced_ || over_) return;
    const auto* const view = std::get_if<WorkView>(&reading);
    if (!view || view->uid != work_uid_) {
      if (named_) return is_lost();
      work_uid_ = view ? view->uid : "";
      known_.clear();
      seq_ = -1;
    }
    if (asked) heard_ = asked;
    if (!view || !view->work || view->work->seq <= seq_) return;
    heard_ = asked.value_or(now_);
    seq_ = view->work->seq;
    draining_ = draining_ || view->work->draining;
    if (view->work->end) {
      if (!ending_) ending_ = now_;
      marked_grace_ = view->work->end->grace;
    }
    std::map<std::string, bool> next;
    for (const WorkEntry& entry : view->work->entries) {
      const std::string text = text_of(entry.id);
      const auto old = known_.find(text);
      next[text] = entry.stop || (old != known_.end() && old->second);
    }
    for (const auto& [text, stop] : known_) {
      if (!next.contains(text)) forgotten_.insert(text);
    }
    known_ = std::move(next);
    std::erase_if(answered_, [&](const auto& one) { return !known_.contains(one.first); });
  }
  // From now on nothing but its end is allowed.
  void is_lost() {
    if (!lost_) lost_ = now_;
  }

  // -- orders --------------------------------------------------------------------------------

  void obey(const SlotOrders& orders) {
    ASSERT_FALSE(over_);
    if (orders.abort_request && request_) {
      if (request_->put && random_.below(2) == 0) late_.push_back(*request_);
      request_.reset();
    }
    for (const AttemptId& id : orders.abort_looks) {
      EXPECT_EQ(looks_.erase(text_of(id)), 1U) << "no such look";
    }
    for (const int slot : orders.terminate) {
      ASSERT_TRUE(processes_.contains(slot)) << "there is nothing to stop";
      processes_.at(slot).asked = true;
    }
    for (const int slot : orders.kill) {
      ASSERT_TRUE(processes_.contains(slot)) << "there is nothing to kill";
      Process& process = processes_.at(slot);
      const bool is_over = process.killed || process.ended;
      EXPECT_TRUE(is_over || process.asked || !known_.contains(text_of(process.id)))
          << "it was not asked to end";
      process.killed = true;
    }
    if (orders.kill_everything) {
      for (auto& [slot, process] : processes_) process.killed = true;
      if (!killed_) killed_ = now_;
    }
    fenced_ = fenced_ || slots_.phase() == Slots::Phase::kFencing;
    for (const SlotOrders::Start& start : orders.starts) check_start(start);
    for (const SlotOrders::Look& look : orders.looks) {
      EXPECT_FALSE(draining_ || fenced_ || lost_) << "a look for nothing";
      EXPECT_TRUE(looks_.emplace(text_of(look.id), look.id).second);
      EXPECT_LE(looks_.size() + processes_.size(), static_cast<std::size_t>(count_));
    }
    check_requests(orders);
    wake_at_ = orders.wake_at;
    if (orders.exit_code) check_end(orders);
    if (!over_) check_processes();
  }

  void check_start(const SlotOrders::Start& start) {
    const std::string text = text_of(start.id);
    EXPECT_TRUE(begun_.insert(text).second) << text << " begins again";
    EXPECT_EQ(may_begin_, start.id) << "without a look that says so";
    EXPECT_TRUE(known_.contains(text)) << "without an entry";
    EXPECT_FALSE(known_[text]) << "after a stop";
    EXPECT_FALSE(draining_ || fenced_ || lost_ || restarted_);
    ASSERT_TRUE(acknowledged_) << "without a renewal";
    EXPECT_LE(*slots_.renewed(), *acknowledged_);
    EXPECT_LE(start.before - *acknowledged_, duration_ * 2 / 3);
    EXPECT_LT(now_ - *acknowledged_, duration_ * 2 / 3);
    EXPECT_TRUE(start.slot >= 0 && start.slot < count_);
    EXPECT_TRUE(processes_.emplace(start.slot, Process{start.id}).second) << "in a slot in use";
  }

  void check_requests(const SlotOrders& orders) {
    const int count = int{orders.get_work} + int{orders.get_worker} + int{orders.put.has_value()};
    if (count == 0) return;
    EXPECT_EQ(count, 1);
    EXPECT_FALSE(request_) << "two requests at a time";
    EXPECT_FALSE(fenced_ || lost_) << "a request after a fence";
    request_ = Request{.put = orders.put.has_value(),
                       .work = orders.get_work,
                       .text = orders.put ? encode_report(*orders.put) : "",
                       .version = version_,
                       .sent = now_};
    if (orders.put) check_report(*orders.put);
  }

  void check_report(const WorkerReport& report) {
    named_ = true;
    EXPECT_EQ(report.life, kLife);
    EXPECT_EQ(report.work_uid, work_uid_);
    EXPECT_EQ(report.seq, std::max<std::int64_t>(seq_, 0));
    EXPECT_TRUE(report.draining || !draining_);
    ASSERT_TRUE(heard_) << "without a read";
    EXPECT_TRUE(!slots_.renewed() || *heard_ > *slots_.renewed() ||
                now_ - *heard_ <= std::min<Duration>(duration_ / 30, seconds(1)))
        << "an old echo";
    for (const auto& given : answered_) {
      const bool kept =
          std::any_of(report.answers.begin(), report.answers.end(), [&](const auto& answer) {
            return text_of(answer.id) == given.first && answer.kind == given.second;
          });
      EXPECT_TRUE(kept) << "the answer for " << given.first;
    }
    for (const Answer& answer : report.answers) {
      const std::string text = text_of(answer.id);
      EXPECT_TRUE(known_.contains(text)) << text << " has no entry";
      const bool alive = std::any_of(processes_.begin(), processes_.end(),
                                     [&](const auto& one) { return one.second.id == answer.id; });
      EXPECT_EQ(alive, answer.kind == AnswerKind::kRunning) << text;
      const bool returned = answer.kind == AnswerKind::kReturned;
      EXPECT_TRUE(begun_.contains(text) || returned) << text;
      EXPECT_TRUE(!begun_.contains(text) || !returned || forgotten_.contains(text)) << text;
      EXPECT_TRUE(answer.kind != AnswerKind::kEnded || ended_.contains(text)) << text;
      EXPECT_TRUE(answer.kind != AnswerKind::kStopped || !ended_.contains(text)) << text;
      if (answer.kind != AnswerKind::kRunning) answered_[text] = answer.kind;
    }
  }

  void check_end(const SlotOrders& orders) {
    over_ = true;
    exit_code_ = orders.exit_code;
    const bool good = exit_code_ == 0;
    EXPECT_TRUE(good || exit_code_ == kFencedExitCode);
    EXPECT_FALSE(good && (fenced_ || lost_ || !processes_.empty()));
    EXPECT_TRUE(!good || asked_);
    for (const auto& [slot, process] : processes_) EXPECT_TRUE(process.killed) << slot;
  }

  // It has just had its say at this moment, so nothing excuses it.
  void check_processes() {
    if (lost_ || fenced_) {
      EXPECT_EQ(slots_.phase(), Slots::Phase::kFencing) << "with nothing alive it ends";
      EXPECT_TRUE(fenced_);
    }
    if (processes_.empty()) return;
    ASSERT_TRUE(acknowledged_);
    const SteadyTime renewed = *slots_.renewed();
    EXPECT_LE(renewed, *acknowledged_);
    SteadyTime kill_by = renewed + duration_ * 49 / 60;
    if (lost_) kill_by = std::min(kill_by, *lost_ + duration_ * 9 / 60);
    if (killed_) {
      EXPECT_LE(wake_at_, std::max(*killed_, kill_by) +
                              std::max<Duration>(duration_ / 120, milliseconds(100)));
      return;
    }
    const bool asks = fenced_ || now_ - renewed >= duration_ * 2 / 3;
    for (const auto& [slot, process] : processes_) {
      EXPECT_TRUE(!asks || process.asked || process.killed) << slot;
      EXPECT_TRUE(known_.contains(text_of(process.id)) || process.killed || fenced_)
          << "its entry is gone";
    }
    if (ending_ && !fenced_) {
      const Duration left = *ending_ + grace() - now_;
      for (const auto& [slot, process] : processes_) {
        const bool may_wait = !marked_grace_ && now_ - *ending_ < seconds(2);
        EXPECT_TRUE(process.asked || process.killed || may_wait || left > stop_grace_ + seconds(1))
            << "the pod ends, and it is not asked";
        EXPECT_TRUE(process.killed || left > seconds(1)) << "the pod ends, and it is not killed";
      }
    }
    EXPECT_LT(now_, kill_by);
    EXPECT_LE(wake_at_, asks ? kill_by : renewed + duration_ * 2 / 3);
  }

  // Until the pod's end: real or assumed.
  Duration grace() const {
    return marked_grace_.value_or(std::min<Duration>(pod_grace_, seconds(30)));
  }

  SeededRandom random_;
  const Duration duration_, pod_grace_, stop_grace_;
  const int count_;
  const bool out_of_reach_;
  Slots slots_;
  SteadyTime now_{seconds(5000)};
  SteadyTime wake_at_{};

  // Under way.
  std::optional<Request> request_;
  std::vector<Request> late_;  // given up, but they may still arrive
  int version_ = 0;            // of the worker Lease, as it was read last
  std::map<std::string, AttemptId> looks_;
  std::map<int, Process> processes_;

  // Its work Lease as it knows it, with each entry that has ever said `stop`.
  std::string work_uid_;
  std::int64_t seq_ = -1;
  std::map<std::string, bool> known_;
  std::optional<SteadyTime> heard_;     // when it asked for that, or the watch had it
  std::optional<AttemptId> may_begin_;  // a live look says so just now
  std::optional<SteadyTime> acknowledged_;
  bool draining_ = false, asked_ = false, restarted_ = false;
  std::optional<SteadyTime> ending_;  // SIGTERM, or the first mark with the pod's end
  std::optional<Duration> marked_grace_;
  std::optional<SteadyTime> lost_;  // when it learned that a Lease is not its own

  // What it did.
  bool named_ = false;  // a renewal has named the Leases
  std::set<std::string> begun_, ended_, forgotten_;
  std::map<std::string, AnswerKind> answered_;  // until the entry is gone
  std::optional<SteadyTime> killed_;
  bool fenced_ = false, over_ = false;
  std::optional<int> exit_code_;
};

}  // namespace holdfast::agent::testing
