// Any history of entries, answers, pauses and ends, by seeds: what must hold in all of them.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/unit/agent/slots_checks.h"
#include "tests/unit/agent/slots_server.h"

namespace holdfast::agent::testing {
namespace {

constexpr int kSeeds = 3000;
constexpr int kSteps = 400;

// In every tenth history another process has run in this container before.
class SlotsHistory : SlotsChecks {
 public:
  explicit SlotsHistory(std::uint64_t seed)
      : SlotsChecks(seed),
        watch_hangs_(random_.below(5) == 0),
        long_texts_(random_.below(10) == 0),
        faults_(random_.below(3) == 0),
        restarts_(random_.below(10) == 0),
        server_(random_, 2 * count_) {
    if (restarts_ && random_.below(3) == 0) restarted_ = server_.mark_by_another_process();
  }

  void run() {
    obey(slots_.begin(now_));
    for (int i = 0; i < kSteps && !over_ && !HasFailure(); ++i) step();
    if (!HasFailure()) bring_to_end();
  }
  int begun() const { return static_cast<int>(begun_.size()); }
  std::optional<int> exit_code() const { return exit_code_; }
  int missed() const { return missed_; }
  int recorded() const { return static_cast<int>(server_.recorded.size()); }
  bool brought_to_end() const { return brought_to_end_; }

 private:
  void step() {
    pass_time();
    if (random_.below(3) > 0) server_.operate();
    if (restarts_ && random_.below(4) == 0 && server_.mark_by_another_process()) restarted_ = true;
    if (faults_ && random_.below(200) == 0) fault();
    if (random_.below(100) == 0) server_.lose_an_attempt();
    if (!late_.empty() && random_.below(4) == 0) {
      server_.put(late_.back().text, late_.back().version);
      late_.pop_back();
    }
    const std::uint64_t what = random_.below(100);
    if (what < 30 && request_) return answer_request();
    if (what < 45 && !looks_.empty()) return answer_look();
    if (what < 65 && !watch_hangs_) return watch();
    if (what < 90 && !processes_.empty()) return live();
    if (what == 99 && random_.below(8) == 0) {
      if (!ending_) ending_ = now_;
      asked_ = draining_ = true;
      return obey(slots_.asked_to_end(now_));
    }
    obey(slots_.woke(now_));
  }

  Duration part(Duration most) {
    return Duration(
        static_cast<Duration::rep>(random_.below(static_cast<std::uint64_t>(most.count()) + 1)));
  }
  // Mostly not at all, or to when it wants to be woken, sometimes a pause of any length.
  void pass_time() {
    const std::uint64_t how = random_.below(1000);
    if (how < 700) return;
    if (how < 997) {
      const Duration wanted = wake_at_ - now_;
      ASSERT_GT(wanted, Duration(0)) << "it would spin";
      now_ += how < 800 ? wanted : part(std::min<Duration>(wanted, seconds(2)));
    } else {
      now_ += part(duration_ * 3);
    }
  }

  void fault() {
    switch (random_.below(4)) {
      case 0:
        return server_.cut_off();
      case 1:
        return server_.delete_worker_lease();
      case 2:
        return server_.delete_work_lease();
      default:
        return server_.make_work_lease_again();
    }
  }

  // -- answers -------------------------------------------------------------------------------

  // As a loop does before it takes an answer: it may be too late for it.
  bool in_time() {
    const bool request = request_.has_value();
    const std::size_t looks = looks_.size();
    obey(slots_.deadlines(now_));
    if (over_) return false;
    if (request == request_.has_value() && looks == looks_.size()) return true;
    obey(slots_.woke(now_));
    return false;
  }

  void answer_request() {
    if (!in_time()) return;
    Request request = *std::exchange(request_, std::nullopt);
    const std::uint64_t what = random_.below(100);
    if (what < 75) return receive(request);
    if (what < 85 && request.put) server_.put(request.text, request.version);
    if (what >= 85 && what < 90 && request.put) late_.push_back(request);
    std::optional<Duration> asked;
    if (random_.below(4) == 0) asked = seconds(random_.below(100));
    LeaseRefusal none = no_lease(LeaseRefusal::Kind::kNone);
    none.retry_after = asked;
    obey(request.work ? slots_.work_answered(now_, none) : slots_.worker_answered(now_, none));
  }

  void receive(const Request& request) {
    if (request.work) {
      const WorkReading reading = server_.get_work();
      knows(reading, request.sent);
      return obey(slots_.work_answered(now_, reading));
    }
    const WorkerReading reading =
        request.put ? server_.put(request.text, request.version) : server_.get_worker();
    using Kind = LeaseRefusal::Kind;
    const auto* const view = std::get_if<WorkerView>(&reading);
    if (view) version_ = server_.version();
    const bool ours = view && view->holder == kWorker &&
                      (view->report->life.empty() || view->report->life == kLife);
    if (request.put && ours) acknowledged_ = request.sent;
    const auto* const refusal = std::get_if<LeaseRefusal>(&reading);
    const bool lost =
        refusal ? refusal->kind == Kind::kFenced || (refusal->kind == Kind::kGone && named_)
                : !ours;
    if (lost) is_lost();
    obey(slots_.worker_answered(now_, reading));
  }

  void answer_look() {
    if (!in_time()) return;
    auto look = looks_.begin();
    std::advance(look, static_cast<std::ptrdiff_t>(random_.below(looks_.size())));
    const AttemptId id = look->second;
    looks_.erase(look);
    if (random_.below(5) == 0) return obey(slots_.looked(now_, id, job(JobReading::Kind::kNone)));
    answer_look(id);
  }
  void answer_look(const AttemptId& id) {
    const JobReading reading = server_.look(id);
    if (reading.kind == JobReading::Kind::kCurrent) may_begin_ = id;
    obey(slots_.looked(now_, id, reading));
    may_begin_.reset();
  }

  void watch() {
    obey(slots_.deadlines(now_));
    if (over_) return;
    std::optional<WorkReading> event = server_.event();
    if (!event) return obey(slots_.woke(now_));
    auto* const view = std::get_if<WorkView>(&*event);
    const bool is_strange = random_.below(30) == 0;  // a version that it does not understand
    if (is_strange && view) view->work = invalid("strange");
    knows(*event);
    obey(slots_.watched(now_, *event));
  }

  // -- processes -----------------------------------------------------------------------------

  void live() {
    obey(slots_.deadlines(now_));
    if (over_) return;
    auto one = processes_.begin();
    std::advance(one, static_cast<std::ptrdiff_t>(random_.below(processes_.size())));
    const auto [slot, process] = *one;
    const std::uint64_t what = random_.below(10);
    if (process.ended || (process.killed && !out_of_reach_)) {
      if (out_of_reach_ || what < 4) return obey(slots_.woke(now_));
      return die(slot);
    }
    if (what < 2) return obey(slots_.happened(now_, slot, Progressed{text(256)}));
    if (what < 4)
      return obey(slots_.happened(now_, slot, Checkpointed{++checkpoints_, text(1024)}));
    if (what < 6 || (process.asked && what < 9)) return end(slot);
    if (what == 9 && !process.asked && !process.killed && random_.below(4) == 0) return miss(slot);
    obey(slots_.woke(now_));
  }
  std::string text(std::size_t most) const {
    return {"x" + std::string(long_texts_ ? most - 1 : 3, 'y')};
  }

  void end(int slot) {
    Process& process = processes_.at(slot);
    if (!process.asked && !process.killed) ended_.insert(text_of(process.id));
    process.ended = true;
    obey(slots_.happened(now_, slot, Ended{3, text(1024)}));
  }
  // Its command did not begin in time.
  void miss(int slot) {
    begun_.erase(text_of(processes_.at(slot).id));
    processes_.erase(slot);
    ++missed_;
    obey(slots_.happened(now_, slot, Missed{}));
  }
  void die(int slot) {
    if (!processes_.at(slot).ended) end(slot);
    if (over_) return;
    processes_.erase(slot);
    obey(slots_.happened(now_, slot, AllDead{}));
  }

  // -- the end -------------------------------------------------------------------------------

  // The API server answers everything, and commands end: then each entry gets its answer.
  void bring_to_end() {
    late_.clear();
    if (over_ || fenced_ || lost_ || out_of_reach_ || restarted_ || !server_.intact()) return;
    if (!processes_.empty() && now_ - *slots_.renewed() > duration_ / 2) return;
    for (int i = 0; i < 1000 && !over_ && !HasFailure(); ++i) {
      server_.bring_to_end();
      if (server_.at_end() && known_.empty() && processes_.empty() && !request_ && !asked_) break;
      if (request_) {
        receive(*std::exchange(request_, std::nullopt));
      } else if (!looks_.empty()) {
        const AttemptId id = looks_.begin()->second;
        looks_.erase(looks_.begin());
        answer_look(id);
      } else if (!processes_.empty()) {
        obey(slots_.deadlines(now_));
        if (!over_) die(processes_.begin()->first);
      } else if (std::optional<WorkReading> event = watch_hangs_ ? std::nullopt : server_.event()) {
        knows(*event);
        obey(slots_.watched(now_, *event));
      } else {
        now_ = wake_at_;
        obey(slots_.woke(now_));
      }
    }
    EXPECT_EQ(over_, asked_);
    const bool time = !asked_ || now_ < *ending_ + grace();
    EXPECT_TRUE(server_.at_end() || !named_ || !time) << "an answer is missing";
    EXPECT_TRUE(!asked_ || exit_code_ == 0);
    brought_to_end_ = true;
  }

  const bool watch_hangs_, long_texts_, faults_, restarts_;
  SlotsServer server_;
  std::int64_t checkpoints_ = 0;
  int missed_ = 0;
  bool brought_to_end_ = false;
};

TEST(SlotsHistories, NoneBeginsTwiceRunsPastItsLeaseOrLosesAnAnswer) {
  int begun = 0, missed = 0, fenced = 0, ended = 0, recorded = 0, brought_to_end = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SlotsHistory history(seed);
    history.run();
    if (HasFailure()) return;
    begun += history.begun();
    missed += history.missed();
    fenced += history.exit_code() == kFencedExitCode ? 1 : 0;
    ended += history.exit_code() == 0 ? 1 : 0;
    recorded += history.recorded();
    brought_to_end += history.brought_to_end() ? 1 : 0;
  }
  // They reach what is to be checked.
  EXPECT_GT(begun, kSeeds * 2);
  EXPECT_GT(missed, kSeeds / 10);
  EXPECT_GT(fenced, kSeeds / 5);
  EXPECT_GT(ended, kSeeds / 10);
  EXPECT_GT(recorded, kSeeds * 2);
  EXPECT_GT(brought_to_end, kSeeds / 10);
}

}  // namespace
}  // namespace holdfast::agent::testing
