// The other side of one warm worker, for the property test of Slots. It has the two Leases, and
// operators that remember nothing and keep the rules of docs/internals/workers.md. A few jobs of
// one run each.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/agent/slots_checks.h"

namespace holdfast::agent::testing {

class SlotsServer {
 public:
  SlotsServer(Random& random, int jobs) : random_(random), jobs_(static_cast<std::size_t>(jobs)) {}

  // One step of some operator.
  void operate() {
    const std::size_t index = random_.below(jobs_.size());
    Job& job = jobs_[index];
    const AttemptId id = id_of(index);
    if (random_.below(400) == 0) return write_drain();
    if (random_.below(2000) == 0) return write_end(std::chrono::seconds(random_.below(90)));
    if (random_.below(12) == 0) return write_old_entry(index);
    if (random_.below(4) == 0)
      return take_out(entries_.empty() ? 0 : random_.below(entries_.size()));
    if (job.state == Job::kIdle && !job.gone) {
      ++job.attempt;
      job.here = random_.below(5) > 0;
      job.state = Job::kOpen;
    } else if (job.state == Job::kOpen && random_.below(20) == 0) {
      job.state = Job::kEnding;
      job.gone = random_.below(4) == 0;
    } else if (job.state != Job::kIdle) {
      go_on(job, id);
    }
  }

  // As operate(), but everything is brought to its end.
  void bring_to_end() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].state != Job::kIdle) go_on(jobs_[i], id_of(i));
    }
    for (std::size_t i = entries_.size(); i-- > 0;) take_out(i);
  }
  bool at_end() const { return entries_.empty(); }

  // -- requests ------------------------------------------------------------------------------

  WorkReading get_work() const {
    if (!work_exists_) return no_lease(LeaseRefusal::Kind::kGone);
    WorkView reading = work_lease(seq_, entries_, work_uid_);
    reading.work->draining = draining_;
    reading.work->end = end_;
    return reading;
  }
  WorkerReading get_worker() const {
    if (!worker_exists_) return no_lease(LeaseRefusal::Kind::kGone);
    WorkerView reading = worker_lease({}, holder_, worker_uid_);
    reading.report = *decode_report(report_text_);
    return reading;
  }
  WorkerReading put(const std::string& text, int version) {
    if (!worker_exists_) return no_lease(LeaseRefusal::Kind::kGone);
    // The fence looks at the newest version, too.
    const bool fenced = holder_ != kWorker && random_.below(2) == 0;
    if (version != version_ && !fenced) return no_lease(LeaseRefusal::Kind::kConflict);
    if (holder_ != kWorker) return no_lease(LeaseRefusal::Kind::kFenced);
    report_text_ = text;
    ++version_;
    return get_worker();
  }
  int version() const { return version_; }
  JobReading look(const AttemptId& id) const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const Job& one = jobs_[i];
      if (id_of(i) == id && one.state == Job::kOpen && one.here && !one.gone) {
        return job(JobReading::Kind::kCurrent);
      }
    }
    return job(JobReading::Kind::kOther);
  }
  // The next event of the watch.
  std::optional<WorkReading> event() {
    if (events_.empty()) return std::nullopt;
    WorkReading next = std::move(events_.front());
    events_.pop_front();
    return next;
  }

  // Both Leases are those that it began with.
  bool intact() const {
    return work_exists_ && works_ == 1 && worker_exists_ && holder_ == kWorker;
  }

  // -- faults --------------------------------------------------------------------------------

  void cut_off() {
    holder_.clear();
    ++version_;
  }
  // Somebody edits a job's record, and an operator goes by that.
  void lose_an_attempt() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const auto found = entry(id_of(i));
      if (jobs_[i].state == Job::kIdle || found == entries_.end() || !work_exists_) continue;
      jobs_[i].state = Job::kIdle;
      entries_.erase(found);
      return write();
    }
  }
  void delete_worker_lease() {
    worker_exists_ = false;
    ++version_;
  }
  void delete_work_lease() {
    work_exists_ = false;
    events_.push_back(get_work());
  }
  void make_work_lease_again() {
    work_exists_ = true;
    work_uid_ = "work-" + std::to_string(++works_);
    entries_.clear();
    draining_ = false;
    end_.reset();
    seq_ = 1;
    events_.push_back(get_work());
  }
  // A process that ran in this container before; if it was in time.
  bool mark_by_another_process() {
    if (!report_text_.empty()) return false;
    report_text_ = encode_report(marked("life-0"));
    ++version_;
    return true;
  }

  // What operators have recorded.
  std::map<std::string, AnswerKind> recorded;

 private:
  struct Job {
    enum State { kIdle, kOpen, kEnding };
    State state = kIdle;
    std::int64_t attempt = 0;
    bool here = false;  // its place is this worker
    bool gone = false;  // somebody has deleted it
  };

  static AttemptId id_of(std::size_t index, std::int64_t number) {
    return attempt("job-" + std::to_string(index), number);
  }
  AttemptId id_of(std::size_t index) const { return id_of(index, jobs_[index].attempt); }

  std::vector<WorkEntry>::iterator entry(const AttemptId& id) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const WorkEntry& one) { return one.id == id; });
  }
  void write() {
    ++seq_;
    events_.push_back(get_work());
  }
  void write_drain() {
    if (draining_ || !work_exists_) return;
    draining_ = true;
    write();
  }

  // The pod was deleted, or again with a shorter grace.
  void write_end(std::chrono::seconds grace) {
    if (!work_exists_ || (end_ && end_->grace <= grace)) return;
    draining_ = true;
    end_ = PodEnd{Time{}, grace};
    write();
  }

  // The next write for an attempt that is open.
  void go_on(Job& job, const AttemptId& id) {
    if (!job.here) return void(job.state = Job::kIdle);
    const std::optional<AnswerKind> kind = answer(id);
    if (kind) {
      EXPECT_TRUE(recorded.emplace(text_of(id), *kind).second) << "two outcomes";
      job.state = Job::kIdle;
      return;
    }
    if (!work_exists_ || entries_.size() >= kMaxProtocolEntries) return;
    const auto found = entry(id);
    const bool stop = job.state == Job::kEnding;
    if (found == entries_.end()) {
      if (draining_) return void(job.state = Job::kIdle);
      entries_.push_back(stop ? testing::stop(id) : run(id));
    } else if (stop && !found->stop) {
      found->stop = true;
    } else {
      return;
    }
    write();
  }
  std::optional<AnswerKind> answer(const AttemptId& id) const {
    const Result<WorkerReport> report = decode_report(report_text_);
    const Answer* const found = answer_to(*report, id);
    if (!found || found->kind == AnswerKind::kRunning) return std::nullopt;
    return found->kind;
  }
  // Somebody whose view is old writes a `run` that no longer counts.
  void write_old_entry(std::size_t index) {
    Job& job = jobs_[index];
    if (job.attempt < 2 || !work_exists_ || draining_) return;
    const AttemptId id = id_of(index, job.attempt - 1);
    if (entry(id) != entries_.end() || entries_.size() >= kMaxProtocolEntries) return;
    entries_.push_back(run(id));
    write();
  }
  // Only if the record has moved on.
  void take_out(std::size_t index) {
    if (index >= entries_.size() || !work_exists_) return;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (id_of(i) == entries_[index].id && jobs_[i].state != Job::kIdle) return;
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
    write();
  }

  Random& random_;
  std::vector<Job> jobs_;
  bool work_exists_ = true;
  int works_ = 1;
  std::string work_uid_ = "work-1";
  std::int64_t seq_ = 1;
  bool draining_ = false;
  std::optional<PodEnd> end_;
  std::vector<WorkEntry> entries_;
  std::deque<WorkReading> events_;
  bool worker_exists_ = true;
  std::string worker_uid_ = "worker-1";
  std::string holder_ = kWorker;
  std::string report_text_;
  int version_ = 1;
};

}  // namespace holdfast::agent::testing
