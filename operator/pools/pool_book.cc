#include "operator/pools/pool_book.h"

#include <algorithm>
#include <cassert>
#include <set>

#include "core/invariant.h"
#include "reconciler/pool/placement.h"

namespace holdfast::pools {

// ---- Jobs.

std::vector<std::string> PoolBook::put(const codecs::CachedJob& job, SteadyTime now) {
  Job& known = jobs_[job.uid];
  known.name = job.name;
  std::vector<std::string> touched = set_places(job, known, now);
  if (!known.promises.empty() && job.version > known.promised_at) drop_promises(known);
  if (is_terminal(job.job.status.phase) || job.job.deleting) {
    lines_.leave(job.uid);
  }
  if (known.places.empty() && known.promises.empty()) jobs_.erase(job.uid);
  keep_free();
  watch_lag(now);
  return touched;
}

std::vector<std::string> PoolBook::set_places(const codecs::CachedJob& job, Job& known,
                                              SteadyTime now) {
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
    if (!stays) slots_.change(ref.worker).places(ref.open).erase(ref.id);
  }
  for (const Ref& ref : known.places) {
    if (any(before, ref, [&](const Ref& one) { return one == ref; })) continue;
    touched.insert(ref.worker);
    WorkerSlots::Places& there = slots_.change(ref.worker).places(ref.open);
    const auto [place, added] = there.try_emplace(ref.id);
    place->second.job_name = job.name;
    place->second.message = ref.message;
    place->second.alone = ref.alone;
    if (added) place->second.since = known.waited_since.value_or(now);
  }
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.at_worker() || touched.count(run.worker_uid) == 0) continue;
    std::chrono::seconds& recorded = slots_.change(run.worker_uid).recorded;
    recorded = std::max(recorded, run.worker_lease_duration);
  }
  for (const std::string& worker : touched) slots_.settle(worker);
  return {touched.begin(), touched.end()};
}

std::vector<std::string> PoolBook::erase(const std::string& job_uid) {
  lines_.leave(job_uid);
  const auto found = jobs_.find(job_uid);
  if (found == jobs_.end()) {
    keep_free();
    return {};
  }
  std::set<std::string> touched;
  drop_promises(found->second);
  for (const Ref& ref : found->second.places) {
    slots_.change(ref.worker).places(ref.open).erase(ref.id);
    touched.insert(ref.worker);
  }
  jobs_.erase(found);
  for (const std::string& worker : touched) slots_.settle(worker);
  keep_free();
  return {touched.begin(), touched.end()};
}

void PoolBook::drop_promises(Job& job) {
  for (const Ref& ref : std::exchange(job.promises, {})) {
    slots_.withdraw_promise(ref.worker, ref.id);
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
  slots_.put(offer, slots, takes, work, report);
  keep_free();
}

void PoolBook::erase_worker(const std::string& uid) {
  if (slots_.all().count(uid) == 0) return;
  put_worker({"", uid}, 0, false, {}, {});
  slots_.change(uid).there = false;
  slots_.forget_if_empty(uid);
}

void PoolBook::keep_free() {
  slots_.keep_free(lines_.alone.wanted());
  assert(jobs_.size() + slots_.all().size() > SlotLine::kCheckedJobs || (check(), true));
}

// While no other run waits, each empty worker may be taken, not only those that are kept.
std::int64_t PoolBook::empty_workers() const {
  return lines_.alone.empty() ? 0 : slots_.empty_workers(!lines_.any.empty());
}

std::vector<reconciler::PoolView::Worker> PoolBook::offer_empty(const codecs::CachedJob& job,
                                                                SteadyTime now) {
  const auto& runs = job.job.status.runs;
  const auto wants = std::count_if(runs.begin(), runs.end(), [](const reconciler::Run& run) {
    return run.alone && !run.open();
  });
  if (wants == 0) return {};
  lines_.alone.looks(job.uid);
  // Before it has asked, nothing is kept for it.
  if (!lines_.alone.wants(job.uid)) return {};
  const std::int64_t empty = empty_workers();
  const std::int64_t before = lines_.alone.wanted_before(job.uid, job.job.created, empty, now);
  const std::int64_t most = std::min<std::int64_t>({empty - before, wants, kMaxOffers});
  return slots_.offer_empty(most, !lines_.any.empty());
}

// ---- The lines.

// Before it has asked, it may want as many as it may open.
std::int64_t PoolBook::wants(const codecs::CachedJob& job) const {
  const auto asked = lines_.any.wants(job.uid);
  const reconciler::Spec& spec = job.job.spec;
  const std::int64_t most = asked.value_or(spec.many_runs() ? spec.parallelism : 1);
  return std::clamp<std::int64_t>(most, 1, kMaxOffers);
}

bool PoolBook::may_wake() const {
  return (slots_.free() > 0 && !lines_.any.empty()) || empty_workers() > 0;
}

std::vector<std::string> PoolBook::wake(SteadyTime now) {
  std::vector<std::string> names = lines_.any.wake(slots_.free(), now);
  for (std::string& name : lines_.alone.wake(empty_workers(), now)) {
    names.push_back(std::move(name));
  }
  return names;
}

reconciler::PoolView PoolBook::offer(const codecs::CachedJob& job, SteadyTime now) {
  reconciler::PoolView view;
  expire(now);
  view.wait = lines_.wait_of(job.uid, now);
  view.empty = offer_empty(job, now);
  lines_.any.looks(job.uid);
  const std::int64_t before =
      lines_.any.wanted_before(job.uid, job.job.created, slots_.free(), now);
  const std::int64_t most = std::min(slots_.free() - before, wants(job));
  if (most <= 0) return view;
  reconciler::SlotPlacement placement;
  const auto is_taken = [&](const std::string& uid) {
    return std::any_of(view.empty.begin(), view.empty.end(),
                       [&](const auto& one) { return one.uid == uid; });
  };
  for (const auto& [uid, worker] : slots_.all()) {
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
    view.offers.push_back(slots_.of(*uid).offer);
  }
  return view;
}

void PoolBook::ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t alone,
                   SteadyTime now) {
  const auto since = lines_.since(job.uid);
  if (runs <= 0 && alone <= 0 && since) {
    Job& known = jobs_[job.uid];
    known.name = job.name;
    known.waited_since = since;
  }
  lines_.ask(job, runs, alone, now);
  keep_free();
  watch_lag(now);
}

bool PoolBook::placed(const codecs::CachedJob& job, const reconciler::Status& next,
                      SteadyTime now) {
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
  if (!known.waited_since) known.waited_since = lines_.since(job.uid).value_or(now);
  promises_.emplace_back(known.promised_until, job.uid);
  for (const Ref& ref : known.promises) {
    slots_.change(ref.worker).promised.push_back({ref.id, ref.alone});
    slots_.settle(ref.worker);
  }
  keep_free();
  lines_.last_turn = now;
  could_since_.reset();
  watch_lag(now);
  return true;
}

void PoolBook::not_placed(const codecs::CachedJob& job, SteadyTime now) {
  const auto found = jobs_.find(job.uid);
  if (found == jobs_.end() || found->second.promised_at != job.version) return;
  drop_promises(found->second);
  if (found->second.places.empty()) jobs_.erase(found);
  keep_free();
  watch_lag(now);
}

void PoolBook::watch_lag(SteadyTime now) {
  if (lines_.any.empty() || slots_.free() <= 0) {
    could_since_.reset();
  } else if (!could_since_) {
    could_since_ = now;
  }
}

// An edited status may have a place twice.
void PoolBook::check() const {
  std::size_t named = 0;
  for (const auto& [uid, job] : jobs_) {
    named += job.places.size() + job.promises.size();
    for (const Ref& ref : job.places) {
      const WorkerSlots& worker = slots_.of(ref.worker);
      const WorkerSlots::Places& places = ref.open ? worker.open : worker.closed;
      const auto place = places.find(ref.id);
      invariant(place != places.end() && place->second.job_name == job.name,
                "each place of a job is one of its worker");
    }
  }
  std::size_t held = 0;
  for (const auto& [uid, worker] : slots_.all()) {
    invariant(worker.there || worker.is_named(), "a worker has Leases, or a job names it");
    held += worker.open.size() + worker.closed.size() + worker.promised.size();
  }
  invariant(held <= named, "no place or promise is without its job");
  slots_.check();
}

Duration PoolBook::lag(SteadyTime now) const {
  return could_since_ ? now - *could_since_ : Duration::zero();
}

}  // namespace holdfast::pools
