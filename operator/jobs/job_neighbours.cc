#include "operator/jobs/job_neighbours.h"

#include <variant>

#include "reconciler/run/slot.h"

namespace holdfast::jobs {
namespace {

const reconciler::PoolView kNoPool{.no_pool = true, .offers = {}, .empty = {}, .wait = {}};

}  // namespace

// That of an attempt that is over stays in the view until nothing of it runs there.
void JobNeighbours::show_slots(const codecs::CachedJob& job, reconciler::JobView& view) const {
  if (!places_) return;
  for (std::size_t position = 0; position < view.runs.size(); ++position) {
    const reconciler::Run& run = job.job.status.runs[position];
    if (!run.at_worker()) continue;
    view.runs[position].slot = places_->at(job, run);
    const reconciler::SlotView& slot = *view.runs[position].slot;
    if (!run.open() && slot.left) continue;
    view.pods.push_back(reconciler::slot_as_pod(job.job, run, slot));
  }
}

void JobNeighbours::observe(const codecs::CachedJob& job, reconciler::Observed& observed) const {
  if (guard_) observed.guard = guard_->view();
  observed.mirrored = mirror_(job) == Mirror::kDone;
  if (job.job.queue) observed.permit = permits_.of(job);
  if (job.job.spec.pool) observed.pool = places_ ? places_->of(job) : kNoPool;
  const bool notifies = !job.job.notify.empty() || !job.job.status.outbox.empty();
  if (notifies && courier_) observed.notify = courier_->of(job);
}

void JobNeighbours::deliver(const codecs::CachedJob& job) const {
  if (courier_) courier_->deliver(job);
}

void JobNeighbours::forget(const std::string& key) const {
  if (courier_) courier_->forget(key);
}

void JobNeighbours::report(const codecs::CachedJob& job, const reconciler::Decision& decision,
                           bool pod_may_come) const {
  if (job.job.queue) permits_.ask(job, decision.awaits_permit, pod_may_come);
  if (!job.job.spec.pool || !places_) return;
  places_->ask(job, decision.awaits_slots, decision.awaits_empty);
  for (const reconciler::Write& write : decision.writes) {
    const auto* const status = std::get_if<reconciler::WriteStatus>(&write);
    if (status) places_->placed(job, status->status);
  }
}

void JobNeighbours::not_written(const codecs::CachedJob& job) const {
  if (job.job.spec.pool && places_) places_->not_placed(job);
}

}  // namespace holdfast::jobs
