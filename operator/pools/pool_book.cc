#include "operator/pools/pool_book.h"

#include <algorithm>
#include <set>

#include "reconciler/pool/placement.h"

namespace holdfast::controller {
namespace {

bool has(const std::vector<AttemptId>& ids, const AttemptId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A tenth, rounded up.
std::int64_t most_kept(std::int64_t workers) { return (workers + 9) / 10; }

}  // namespace

bool PoolBook::Worker::is_over(const AttemptId& id) const { return has(over, id); }
bool PoolBook::Worker::has_entry(const AttemptId& id) const { return has(entries, id); }

// ---- Jobs.

std::vector<std::string> PoolBook::put(const CachedJob& job, SteadyTime now) {
  Job& known = jobs_[job.uid];
  known.name = job.name;
  std::vector<std::string> touched = set_places(job, known, now);
  if (!known.promises.empty() && job.version > known.promised_at) drop_promises(known);
  if (is_terminal(job.job.status.phase) || job.job.deleting) {
    line_.leave(job.uid);
    alone_line_.leave(job.uid);
  }
  if (known.places.empty() && known.promises.empty()) jobs_.erase(job.uid);
  keep_free();
  watch_lag(now);
  return touched;
}

std::vector<std::string> PoolBook::set_places(const CachedJob& job, Job& known, SteadyTime now) {
  std::set<std::string> touched;
  std::vector<Ref> places;
  for (const reconciler::Run& run : job.job.status.runs) {
    if (run.at_worker()) {
      places.push_back({run.worker_uid,
                        {job.uid, run.index, run.attempt},
                        run.open(),
                        job.job.message,
                        run.alone});
    }
  }
  if (places == known.places) return {};
  std::vector<Ref> before;
  std::swap(before, known.places);
  known.places = std::move(places);
  // The runs of a status are in order. An edited one may have a run twice.
  const auto any = [](const std::vector<Ref>& refs, const Ref& ref, const auto& is_it) {
    const auto [from, to] =
        std::equal_range(refs.begin(), refs.end(), ref,
                         [](const Ref& a, const Ref& b) { return a.id.run < b.id.run; });
    return std::any_of(from, to, is_it);
  };
  for (const Ref& ref : before) {
    if (any(known.places, ref, [&](const Ref& one) { return one == ref; })) continue;
    touched.insert(ref.worker);
    const bool stays = any(known.places, ref, [&](const Ref& one) {
      return one.worker == ref.worker && one.id == ref.id && one.open == ref.open;
    });
    if (!stays) workers_[ref.worker].places(ref.open).erase(ref.id);
  }
  for (const Ref& ref : known.places) {
    if (any(before, ref, [&](const Ref& one) { return one == ref; })) continue;
    touched.insert(ref.worker);
    Places& there = workers_[ref.worker].places(ref.open);
    const auto [place, added] = there.try_emplace(ref.id);
    place->second.job_name = job.name;
    place->second.message = ref.message;
    place->second.alone = ref.alone;
    if (added) place->second.since = known.waited_since.value_or(now);
  }
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.at_worker() || touched.count(run.worker_uid) == 0) continue;
    std::chrono::seconds& recorded = workers_[run.worker_uid].recorded;
    recorded = std::max(recorded, run.worker_lease_duration);
  }
  for (const std::string& worker : touched) {
    recount(workers_[worker]);
    forget_if_empty(worker);
  }
  return {touched.begin(), touched.end()};
}

std::vector<std::string> PoolBook::erase(const std::string& job_uid) {
  line_.leave(job_uid);
  alone_line_.leave(job_uid);
  const auto found = jobs_.find(job_uid);
  if (found == jobs_.end()) {
    keep_free();
    return {};
  }
  std::set<std::string> touched;
  drop_promises(found->second);
  for (const Ref& ref : found->second.places) {
    workers_[ref.worker].places(ref.open).erase(ref.id);
    touched.insert(ref.worker);
  }
  jobs_.erase(found);
  for (const std::string& worker : touched) {
    recount(workers_[worker]);
    forget_if_empty(worker);
  }
  keep_free();
  return {touched.begin(), touched.end()};
}

void PoolBook::drop_promises(Job& job) {
  for (const Ref& ref : std::exchange(job.promises, {})) {
    const auto worker = workers_.find(ref.worker);
    if (worker == workers_.end()) continue;
    std::erase_if(worker->second.promised, [&](const Promised& one) { return one.id == ref.id; });
    recount(worker->second);
    forget_if_empty(ref.worker);
  }
}

std::optional<Duration> PoolBook::expire(SteadyTime now) {
  while (!promises_.empty() && promises_.front().first <= now) {
    const auto found = jobs_.find(promises_.front().second);
    promises_.pop_front();
    if (found == jobs_.end() || found->second.promised_until > now) continue;
    drop_promises(found->second);
    if (found->second.places.empty()) jobs_.erase(found);
  }
  keep_free();
  watch_lag(now);
  if (promises_.empty()) return std::nullopt;
  return promises_.front().first - now;
}

std::string PoolBook::name_of(const std::string& job_uid) const {
  const auto found = jobs_.find(job_uid);
  return found == jobs_.end() ? "" : found->second.name;
}

// ---- Workers.

void PoolBook::put_worker(const reconciler::PoolView::Worker& offer, std::int64_t slots, bool takes,
                          const Work& work, const WorkerReport& report) {
  Worker& worker = workers_[offer.uid];
  sum(worker, -1);
  worker.there = true;
  worker.offer = offer;
  worker.slots = slots;
  worker.takes = false;  // it is in no sum now
  worker.entries.clear();
  for (const WorkEntry& entry : work.entries) worker.entries.push_back(entry.id);
  worker.over.clear();
  for (const Answer& answer : report.answers) {
    if (answer.kind != AnswerKind::kRunning) worker.over.push_back(answer.id);
  }
  recount(worker);
  worker.takes = takes;
  sum(worker, 1);
  keep_free();
}

void PoolBook::erase_worker(const std::string& uid) {
  const auto found = workers_.find(uid);
  if (found == workers_.end()) return;
  put_worker({"", uid}, 0, false, {}, {});
  found->second.there = false;
  forget_if_empty(uid);
}

void PoolBook::forget_if_empty(const std::string& uid) {
  const auto found = workers_.find(uid);
  if (found == workers_.end() || found->second.there) return;
  if (!found->second.has_places() && found->second.promised.empty()) workers_.erase(found);
}

std::int64_t PoolBook::count(const Worker& worker, bool all) {
  std::int64_t sum = 0;
  const auto add = [&](const AttemptId& id) { sum += all || !worker.is_over(id) ? 1 : 0; };
  for (const AttemptId& id : worker.entries) add(id);
  for (const auto& [id, place] : worker.open) {
    if (!worker.has_entry(id)) add(id);
  }
  for (const Promised& one : worker.promised) {
    if (!worker.has_entry(one.id) && worker.open.count(one.id) == 0) add(one.id);
  }
  return sum;
}

// Also one whose end is on record, until the worker has answered.
bool PoolBook::has_alone(const Worker& worker) {
  const auto is_alone = [&](const auto& place) {
    return place.second.alone && !worker.is_over(place.first);
  };
  return std::any_of(worker.open.begin(), worker.open.end(), is_alone) ||
         std::any_of(
             worker.closed.begin(), worker.closed.end(),
             [&](const auto& place) { return is_alone(place) && worker.has_entry(place.first); }) ||
         std::any_of(worker.promised.begin(), worker.promised.end(),
                     [](const Promised& one) { return one.alone; });
}

// A slot is used until the worker has answered with an end, whatever is on record by then.
void PoolBook::recount(Worker& worker) {
  sum(worker, -1);
  worker.used = count(worker, /*all=*/false);
  worker.alone = has_alone(worker);
  sum(worker, 1);
}

void PoolBook::sum(const Worker& worker, int sign) {
  if (!worker.takes) return;
  busy_ += sign * worker.used;
  slots_ += sign * worker.slots;
  if (!worker.takes_any()) return;
  free_ += sign * std::max<std::int64_t>(worker.slots - worker.used, 0);
}

// ---- Workers for runs that need one of their own.

// The emptiest are kept, and stay kept while such runs wait. A worker that has such a run counts,
// too: together they are a tenth at most.
void PoolBook::keep_free() {
  if (alone_line_.empty() && kept_ == 0) return;
  std::int64_t workers = 0;
  std::int64_t taken = 0;
  std::vector<std::pair<std::tuple<bool, std::int64_t, std::string>, Worker*>> others;
  for (auto& [uid, worker] : workers_) {
    workers += worker.takes ? 1 : 0;
    taken += worker.takes && worker.alone ? 1 : 0;
    const bool may_be = worker.takes && !worker.alone;
    if (may_be) {
      others.push_back({{!worker.kept, worker.used, uid}, &worker});
    } else {
      worker.kept = false;
    }
  }
  std::sort(others.begin(), others.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  kept_ = std::clamp<std::int64_t>(alone_line_.wanted(), 0,
                                   std::max<std::int64_t>(most_kept(workers) - taken, 0));
  kept_ = std::min(kept_, static_cast<std::int64_t>(others.size()));
  for (std::int64_t n = 0; n < static_cast<std::int64_t>(others.size()); ++n) {
    Worker& worker = *others[static_cast<std::size_t>(n)].second;
    if (worker.kept == (n < kept_)) continue;
    sum(worker, -1);
    worker.kept = n < kept_;
    sum(worker, 1);
  }
}

// While no other run waits, each empty worker may be taken, not only those that are kept.
std::int64_t PoolBook::empty_workers() const {
  if (alone_line_.empty()) return 0;
  return std::count_if(workers_.begin(), workers_.end(), [&](const auto& one) {
    return one.second.takes_alone() && (one.second.kept || line_.empty());
  });
}

std::vector<reconciler::PoolView::Worker> PoolBook::offer_empty(const CachedJob& job,
                                                                SteadyTime now) {
  std::vector<reconciler::PoolView::Worker> offers;
  const auto& runs = job.job.status.runs;
  const auto wants = std::count_if(runs.begin(), runs.end(), [](const reconciler::Run& run) {
    return run.alone && !run.open();
  });
  if (wants == 0) return offers;
  alone_line_.looks(job.uid);
  // Before it has asked, nothing is kept for it.
  if (!alone_line_.wants(job.uid)) return offers;
  const std::int64_t empty = empty_workers();
  const std::int64_t before = alone_line_.wanted_before(job.uid, job.job.created, empty, now);
  const std::int64_t most = std::min<std::int64_t>({empty - before, wants, kMaxOffers});
  for (const bool kept : {true, false}) {
    for (const auto& [uid, worker] : workers_) {
      if (static_cast<std::int64_t>(offers.size()) >= most) return offers;
      const bool may_take = worker.takes_alone() && worker.kept == kept && (kept || line_.empty());
      if (may_take) offers.push_back(worker.offer);
    }
  }
  return offers;
}

bool PoolBook::is_kept(const std::string& worker_uid) const {
  const auto found = workers_.find(worker_uid);
  return found != workers_.end() && (found->second.kept || found->second.alone);
}

const PoolBook::Places& PoolBook::places(const std::string& worker_uid) const {
  static const Places kNone;
  const auto found = workers_.find(worker_uid);
  return found == workers_.end() ? kNone : found->second.open;
}

const PoolBook::Places& PoolBook::closed_places(const std::string& worker_uid) const {
  static const Places kNone;
  const auto found = workers_.find(worker_uid);
  return found == workers_.end() ? kNone : found->second.closed;
}

std::string PoolBook::job_at(const std::string& worker_uid, const AttemptId& id) const {
  for (const Places* const places : {&this->places(worker_uid), &closed_places(worker_uid)}) {
    const auto found = places->find(id);
    if (found != places->end()) return found->second.job_name;
  }
  return "";
}

std::vector<reconciler::Placed> PoolBook::open_places(const std::string& worker_uid) const {
  std::vector<reconciler::Placed> open;
  for (const auto& [id, place] : places(worker_uid)) {
    open.push_back({id, place.job_name, place.message});
  }
  return open;
}

std::int64_t PoolBook::attempts(const std::string& worker_uid) const {
  const auto found = workers_.find(worker_uid);
  return found == workers_.end() ? 0 : count(found->second, /*all=*/true);
}

bool PoolBook::is_named(const std::string& worker_uid) const {
  const auto found = workers_.find(worker_uid);
  if (found == workers_.end()) return false;
  return found->second.has_places() || !found->second.promised.empty();
}

std::optional<Duration> PoolBook::waited(const std::string& worker_uid, const AttemptId& id,
                                         SteadyTime now) const {
  const Places& open = places(worker_uid);
  const auto place = open.find(id);
  if (place == open.end()) return std::nullopt;
  return now - place->second.since;
}

std::vector<std::string> PoolBook::missing() const {
  std::vector<std::string> uids;
  for (const auto& [uid, worker] : workers_) {
    if (!worker.there && worker.has_places()) uids.push_back(uid);
  }
  return uids;
}

bool PoolBook::is_missing(const std::string& worker_uid) const {
  const auto found = workers_.find(worker_uid);
  return found != workers_.end() && !found->second.there && found->second.has_places();
}

std::chrono::seconds PoolBook::lease_duration(const std::string& worker_uid) const {
  const auto found = workers_.find(worker_uid);
  const bool is_known = found != workers_.end() && found->second.recorded.count() > 0;
  return is_known ? found->second.recorded : kLongestDuration;
}

// ---- The line.

// Before it has asked, it may want as many as it may open.
std::int64_t PoolBook::wants(const CachedJob& job) const {
  const auto asked = line_.wants(job.uid);
  const reconciler::Spec& spec = job.job.spec;
  const std::int64_t most = asked.value_or(spec.many_runs() ? spec.parallelism : 1);
  return std::clamp<std::int64_t>(most, 1, kMaxOffers);
}

std::optional<SteadyTime> PoolBook::waits_since(const std::string& job_uid) const {
  const auto since = line_.since(job_uid);
  const auto alone = alone_line_.since(job_uid);
  return since && alone ? std::min(since, alone) : since ? since : alone;
}

std::optional<Time> PoolBook::oldest() const {
  const auto since = line_.oldest();
  const auto alone = alone_line_.oldest();
  return since && alone ? std::min(since, alone) : since ? since : alone;
}

std::vector<std::string> PoolBook::waiting_names() const {
  std::vector<std::string> names = line_.names();
  for (std::string& name : alone_line_.names()) names.push_back(std::move(name));
  return names;
}

bool PoolBook::may_wake() const { return (free_ > 0 && !line_.empty()) || empty_workers() > 0; }

std::vector<std::string> PoolBook::wake(SteadyTime now) {
  std::vector<std::string> names = line_.wake(free_, now);
  for (std::string& name : alone_line_.wake(empty_workers(), now)) names.push_back(std::move(name));
  return names;
}

reconciler::TurnWait PoolBook::wait_of(const std::string& job_uid, SteadyTime now) const {
  const auto since = waits_since(job_uid);
  if (!since) return {};
  return {now - *since, now - std::max(last_turn_.value_or(*since), *since)};
}

reconciler::PoolView PoolBook::offer(const CachedJob& job, SteadyTime now) {
  reconciler::PoolView view;
  expire(now);
  view.wait = wait_of(job.uid, now);
  view.empty = offer_empty(job, now);
  line_.looks(job.uid);
  const std::int64_t before = line_.wanted_before(job.uid, job.job.created, free_, now);
  const std::int64_t most = std::min(free_ - before, wants(job));
  if (most <= 0) return view;
  reconciler::SlotPlacement placement;
  const auto is_taken = [&](const std::string& uid) {
    return std::any_of(view.empty.begin(), view.empty.end(),
                       [&](const auto& one) { return one.uid == uid; });
  };
  for (const auto& [uid, worker] : workers_) {
    if (!worker.takes_any() || is_taken(uid)) continue;
    placement.add(uid, static_cast<int>(worker.slots), static_cast<int>(worker.used));
  }
  const auto& pool = job.job.spec.pool;
  for (std::int64_t n = 0; n < most; ++n) {
    std::string key = pool ? pool->key : "";
    if (key.empty()) key = job.uid;
    // The runs of one job spread.
    if (job.job.spec.many_runs() && (!pool || pool->key.empty())) {
      key += "/" + std::to_string(job.job.status.attempt + n);
    }
    const auto uid = placement.place(key);
    if (!uid) break;
    view.offers.push_back(workers_.at(*uid).offer);
  }
  return view;
}

void PoolBook::ask(const CachedJob& job, std::int64_t runs, std::int64_t alone, SteadyTime now) {
  const auto since = waits_since(job.uid);
  if (runs <= 0 && alone <= 0 && since) {
    Job& known = jobs_[job.uid];
    known.name = job.name;
    known.waited_since = since;
  }
  line_.ask(job.uid, job.name, job.job.created, runs, now);
  alone_line_.ask(job.uid, job.name, job.job.created, alone, now);
  keep_free();
  watch_lag(now);
}

bool PoolBook::placed(const CachedJob& job, const reconciler::Status& next, SteadyTime now) {
  std::vector<Ref> promises;
  for (const reconciler::Run& run : next.runs) {
    const bool is_new = run.open() && run.attempt > job.job.status.attempt;
    if (!is_new || !run.at_worker()) continue;
    promises.push_back({run.worker_uid, {job.uid, run.index, run.attempt}, true, 0, run.alone});
  }
  if (promises.empty()) return false;
  Job& known = jobs_[job.uid];
  known.name = job.name;
  drop_promises(known);
  known.promises = std::move(promises);
  known.promised_at = job.version;
  known.promised_until = now + kPromise;
  if (!known.waited_since) known.waited_since = waits_since(job.uid).value_or(now);
  promises_.emplace_back(known.promised_until, job.uid);
  for (const Ref& ref : known.promises) {
    Worker& worker = workers_[ref.worker];
    worker.promised.push_back({ref.id, ref.alone});
    recount(worker);
  }
  keep_free();
  last_turn_ = now;
  could_since_.reset();
  watch_lag(now);
  return true;
}

void PoolBook::not_placed(const CachedJob& job, SteadyTime now) {
  const auto found = jobs_.find(job.uid);
  if (found == jobs_.end() || found->second.promised_at != job.version) return;
  drop_promises(found->second);
  if (found->second.places.empty()) jobs_.erase(found);
  keep_free();
  watch_lag(now);
}

void PoolBook::watch_lag(SteadyTime now) {
  if (line_.empty() || free_ <= 0) {
    could_since_.reset();
  } else if (!could_since_) {
    could_since_ = now;
  }
}

Duration PoolBook::lag(SteadyTime now) const {
  return could_since_ ? now - *could_since_ : Duration::zero();
}

}  // namespace holdfast::controller
