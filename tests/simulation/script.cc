#include "tests/simulation/script.h"

#include <algorithm>

#include "core/random.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using enum Act;

// How an act is drawn: how many an hour at most, and how long each lasts.
struct Habit {
  Act act;
  int most_an_hour;
  Duration least{0};
  Duration most{0};
  int most_permille = 0;
};

constexpr Habit kHabits[] = {
    {kCreateJob, 240},
    {kEditSpec, 30},
    {kSuspend, 20, seconds(1), minutes(5)},
    {kCancel, 20},
    {kDeleteJob, 20},
    {kRecreateJob, 15},
    {kDeletePod, 20},
    {kForceDeletePod, 12},
    {kStripLabels, 12},
    {kDeleteNamespace, 2},
    {kQuota, 6, seconds(5), minutes(4)},
    {kWorkerFails, 4, minutes(1), minutes(20), 800},
    {kImageError, 4, seconds(20), minutes(6)},
    {kUnschedulable, 4, seconds(20), minutes(6)},
    {kEviction, 12},
    {kNodeSilent, 8, seconds(5), minutes(8)},
    {kNodePowerLoss, 6, seconds(20), minutes(8)},
    {kNodeDeleted, 4, minutes(1), minutes(10)},
    {kLoseRequest, 8, seconds(20), minutes(5), 300},
    {kLoseAnswer, 8, seconds(20), minutes(5), 300},
    {kDelayRequest, 8, seconds(20), minutes(5), 300},
    {kDelayAnswer, 8, seconds(20), minutes(5), 300},
    {kDuplicate, 8, seconds(60), minutes(10), 500},
    {kRefuse429, 6, seconds(10), minutes(3), 400},
    {kRefuse500, 6, seconds(10), minutes(3), 400},
    {kRefuse503, 6, seconds(10), minutes(3), 400},
    {kCutSilently, 5, seconds(1), minutes(3)},
    {kCutRefused, 5, seconds(1), minutes(3)},
    {kSlowWatch, 6, seconds(20), minutes(5), 400},
    {kHalfOpenWatch, 3},
    {kBreakWatch, 10},
    {kWatchCacheLag, 5, seconds(10), minutes(2)},
    {kCompaction, 6},
    {kOutage, 4, seconds(1), minutes(6)},
    {kRestart, 6},
    {kEtcdStall, 4, seconds(2), minutes(5)},
    {kRestore, 2, seconds(30), minutes(10)},
    {kCrash, 20, milliseconds(200), seconds(20)},
    {kCleanRestart, 6, milliseconds(200), seconds(10)},
    {kPause, 8, milliseconds(500), minutes(3)},
    {kServerClockStep, 6},
    {kRefuse403, 6, seconds(1), minutes(1), 600},
    {kHangingWebhook, 6, seconds(20), minutes(8)},
    {kLongRetryAfter, 6, seconds(20), minutes(4), 900},
    {kNamespaceFails, 6, seconds(5), minutes(6)},
    {kForgePod, 30},
    {kStripOwner, 15},
    // Shorter than what makes such a refusal final.
    {kBrokenPods, 8, seconds(2), seconds(100)},
    {kDeleteLease, 60},
    {kWorkerHangs, 4, minutes(1), minutes(20), 600},
    {kAgentSilent, 4, minutes(1), minutes(20), 600},
    {kNextImageError, 4, seconds(20), minutes(6)},
    {kEditQueue, 30},
    {kHoldQueue, 12, seconds(1), minutes(4)},
    {kReprioritize, 40},
    {kRecreateQueue, 10, milliseconds(100), minutes(2)},
    {kEditPool, 30},
    {kRecreatePool, 6, milliseconds(100), minutes(2)},
    {kKillWorker, 60},
    {kCutWorker, 20, milliseconds(500), minutes(2)},
    {kFreezeWorker, 20, milliseconds(500), minutes(2)},
    {kLossyWorkers, 8, seconds(20), minutes(4), 200},
    {kDeleteWorkerLease, 20},
    {kTouchLeases, 12, seconds(2), minutes(1)},
    {kSendMessage, 40},
    {kRestartWorker, 60},
    {kEditHolder, 20},
    {kEditWork, 20},
    {kEditBatchJob, 60},
    {kSuspendBatchJob, 40, seconds(1), minutes(4)},
    {kDeleteBatchJob, 40},
    {kTakeBackStart, 60},
    {kNewerStatus, 240},
    {kNewerSpec, 120, seconds(1), minutes(6)},
    {kSpoilGuard, 8, seconds(2), minutes(12)},
};
// Drawn last, so that the other acts of a script are what they are without it.
constexpr Habit kFailingDeletions{kDeletionsFail, 12, seconds(2), minutes(3)};

const std::vector<Act> kUsers = {kEditSpec,        kSuspend,   kCancel,         kDeleteJob,
                                 kRecreateJob,     kDeletePod, kForceDeletePod, kStripLabels,
                                 kDeleteNamespace, kQuota};
const std::vector<Act> kNodes = {kWorkerFails, kImageError,    kUnschedulable, kEviction,
                                 kNodeSilent,  kNodePowerLoss, kNodeDeleted};
const std::vector<Act> kRequests = {kLoseRequest, kLoseAnswer, kDelayRequest, kDelayAnswer,
                                    kDuplicate,   kRefuse429,  kRefuse500,    kRefuse503,
                                    kCutSilently, kCutRefused};
const std::vector<Act> kWatches = {kSlowWatch, kHalfOpenWatch, kBreakWatch, kWatchCacheLag,
                                   kCompaction};
const std::vector<Act> kServer = {kOutage, kRestart, kEtcdStall, kServerClockStep};
// Groups of their own, and the last, so that scripts without them are what they were before they
// were here.
const std::vector<Act> kForbidding = {kRefuse403};
const std::vector<Act> kTenants = {kHangingWebhook, kLongRetryAfter, kNamespaceFails};
const std::vector<Act> kForgers = {kForgePod, kStripOwner, kBrokenPods};
const std::vector<Act> kHeartbeats = {kDeleteLease, kWorkerHangs, kAgentSilent, kNextImageError};
// Not drawn one by one: worlds with queues have them all, and so have drawn worlds with pools.
constexpr Act kQueues[] = {kEditQueue, kHoldQueue, kReprioritize, kRecreateQueue};
const std::vector<Act> kWorkers = {kEditPool,          kRecreatePool, kKillWorker,
                                   kCutWorker,         kFreezeWorker, kLossyWorkers,
                                   kDeleteWorkerLease, kTouchLeases,  kSendMessage};
const std::vector<Act> kBatchJobs = {kEditBatchJob, kSuspendBatchJob, kDeleteBatchJob};
const std::vector<Act> kNewer = {kNewerStatus, kNewerSpec};
const std::vector<Act> kProcesses = {kCrash, kCleanRestart, kPause, kClockDrift};
const std::vector<Act> kKubelets = {kTakeBackStart};

bool hides_the_guard(Act act) {
  return std::find(kRequests.begin(), kRequests.end(), act) != kRequests.end() ||
         act == kRefuse403 || act == kOutage;
}

std::vector<Act> all_of(std::initializer_list<std::vector<Act>> groups) {
  std::vector<Act> acts = {kCreateJob};
  for (const auto& group : groups) acts.insert(acts.end(), group.begin(), group.end());
  return acts;
}

class Drawing {
 public:
  Drawing(std::uint64_t seed, const Profile& profile, Duration length)
      : random_(mix(seed, 0x5C819)), profile_(profile) {
    script_.seed = seed;
    script_.profile = profile.name;
    script_.length = length;
    script_.kills_every = profile.kills_every;
    script_.heartbeats = profile.heartbeats;
    script_.volume = profile.volume;
    script_.guard = profile.guard;
    script_.rescue = profile.rescue;
    script_.guard_is_readable = profile.guard && mix(script_.seed, 0x6A4D) % 2 == 0;
    script_.lane = profile.lane || (profile.guard && mix(script_.seed, 0x1A4E) % 3 == 0);
    script_.pools =
        profile.pools ||
        (profile.draws_subset && !profile.heartbeats && mix(script_.seed, 0x9001) % 4 == 0) ||
        (profile.guard && !script_.lane && mix(script_.seed, 0x9001) % 2 == 0);
    script_.many_runs = profile.many_runs || ((profile.draws_subset || profile.guard) &&
                                              mix(script_.seed, 0x3A11) % 3 == 0);
    script_.queues = profile.queues || ((profile.draws_subset || profile.guard) &&
                                        mix(script_.seed, 0x90E0E) % 4 == 0);
  }

  Script draw() {
    choose();
    script_.nodes = 1 + static_cast<int>(random_.below(6));
    script_.replicas = 1 + static_cast<int>(random_.below(3));
    // A third of the worlds.
    script_.by_namespace = mix(script_.seed, 0x4A3E) % 3 == 0 || profile_.name == "tenants";
    if (const std::uint64_t draw = mix(script_.seed, 0xC10C); draw % 4 == 0) {
      script_.slower_server = std::chrono::milliseconds(1100 + draw / 4 % 1500);
    }
    script_.own_versions = mix(script_.seed, 0xE7CD) % 3 == 0;
    static constexpr int kShards[] = {1, 2, 5, 8, 32};
    script_.shards = kShards[random_.below(5)];
    for (int i = 0; i < script_.replicas; ++i) {
      SimLoop::Clock clock;
      clock.offset = seconds(static_cast<std::int64_t>(1 + random_.below(100'000)));
      const auto drift = static_cast<std::int64_t>(random_.below(200'001)) - 100'000;
      if (has(kClockDrift)) clock.rate_ppm += drift;
      script_.clocks.push_back(clock);
    }
    // The load is not the same in each world either.
    const int busy = 200 + static_cast<int>(random_.below(800));
    for (const Habit& habit : kHabits) {
      // The one job is load enough.
      const int jobs = profile_.volume > 0 ? 100 : busy;
      if (has(habit.act)) add(habit, habit.act == kCreateJob ? jobs : 1000);
    }
    number_from(0);
    const std::size_t others = script_.events.size();
    // A quarter of the worlds with users.
    const bool fails = has(kCancel) || has(kSuspend) || has(kDeleteJob);
    if (fails && mix(script_.seed, 0xDE1E) % 4 == 0) add(kFailingDeletions, 1000);
    number_from(others);
    sort_by_time(script_.events.begin());
    return std::move(script_);
  }

 private:
  bool has(Act act) const {
    return std::find(chosen_.begin(), chosen_.end(), act) != chosen_.end();
  }

  void choose() {
    // A third of all kinds on average, at least one.
    const std::uint64_t share = 100 + random_.below(500);
    for (const Act act : profile_.acts) {
      const bool drawn = random_.below(1000) < share;
      if (script_.guard_is_readable && hides_the_guard(act)) continue;
      if (act == kCreateJob || !profile_.draws_subset || drawn) chosen_.push_back(act);
    }
    if (script_.queues) chosen_.insert(chosen_.end(), std::begin(kQueues), std::end(kQueues));
    if (!script_.pools || profile_.pools) return;
    chosen_.insert(chosen_.end(), kWorkers.begin(), kWorkers.end());
  }

  void sort_by_time(std::vector<ScriptEvent>::iterator from) {
    std::stable_sort(from, script_.events.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
  }

  // The events from this place on are in their order.
  void number_from(std::size_t place) {
    sort_by_time(script_.events.begin() + static_cast<std::ptrdiff_t>(place));
    for (; place < script_.events.size(); ++place) {
      ScriptEvent& event = script_.events[place];
      event.id = static_cast<int>(place);
      event.seed = mix(script_.seed, 0xACC + place);
    }
  }

  Duration between(Duration least, Duration most) {
    if (most <= least) return least;
    const auto span = static_cast<std::uint64_t>((most - least).count());
    // Short ones as often as long ones.
    const double drawn = random_.uniform() * random_.uniform();
    return least + Duration(static_cast<std::int64_t>(drawn * static_cast<double>(span)));
  }

  void add(const Habit& habit, int share) {
    const double hours = to_seconds(script_.length) / 3600;
    const int most = std::max(1, static_cast<int>(habit.most_an_hour * hours * share / 1000));
    const int count = 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(most)));
    for (int i = 0; i < count; ++i) {
      ScriptEvent event;
      event.act = habit.act;
      // What happens late can still be seen to happen.
      const auto room = static_cast<std::uint64_t>((script_.length * 19 / 20).count());
      event.at = seconds(3) + Duration(static_cast<std::int64_t>(random_.below(room)));
      if (habit.act == kCreateJob && i < 3) event.at = seconds(1 + i);
      event.lasts = between(habit.least, habit.most);
      event.target = static_cast<int>(random_.below(60));
      if (habit.most_permille > 0) {
        event.permille =
            20 + static_cast<int>(random_.below(static_cast<std::uint64_t>(habit.most_permille)));
      }
      script_.events.push_back(event);
    }
  }

  SeededRandom random_;
  const Profile& profile_;
  std::vector<Act> chosen_;
  Script script_;
};

}  // namespace

const std::vector<Profile>& profiles() {
  static const auto* const kProfiles = new std::vector<Profile>{
      {.name = "swarm",
       .acts = all_of({kUsers, kNodes, kRequests, kWatches, kServer, kProcesses, kForbidding,
                       kTenants, kForgers, kKubelets}),
       .draws_subset = true},
      {.name = "calm", .acts = all_of({})},
      {.name = "users", .acts = all_of({kUsers})},
      {.name = "nodes", .acts = all_of({kNodes, kKubelets})},
      {.name = "network", .acts = all_of({kRequests, kWatches, kForbidding})},
      {.name = "server", .acts = all_of({kServer, kWatches})},
      {.name = "processes", .acts = all_of({kProcesses, {kWorkerFails, kEditSpec}})},
      // What S14 and S15 are about: replicas that pause, and requests that are long under way.
      {.name = "fencing",
       .acts = all_of({{kPause, kCrash, kClockDrift, kLoseRequest, kLoseAnswer, kDelayRequest,
                        kDelayAnswer, kDuplicate, kRefuse429, kRefuse503, kCutSilently, kEtcdStall,
                        kWorkerFails, kEditSpec}})},
      {.name = "tenants",
       .acts = all_of({kTenants, {kWorkerFails, kNodeSilent, kCancel, kCrash, kCleanRestart}})},
      {.name = "forgers",
       .acts = all_of({kForgers,
                       {kForceDeletePod, kStripLabels, kWorkerFails, kLoseAnswer, kCrash,
                        kCleanRestart, kNodePowerLoss}})},
      {.name = "heartbeats",
       .acts = all_of({{kDeleteLease, kForceDeletePod, kDeletePod, kWorkerFails, kNodePowerLoss,
                        kSuspend, kCrash, kCleanRestart, kPause, kLoseRequest, kLoseAnswer,
                        kDelayRequest, kWorkerHangs, kAgentSilent, kNextImageError}}),
       .heartbeats = true},
      {.name = "everything",
       .acts = all_of({kUsers, kNodes, kRequests, kWatches, kServer, kProcesses})},
      {.name = "restore",
       .acts = all_of({{kRestore, kCrash, kCancel, kDeleteJob, kWorkerFails, kNodeSilent}})},
      // No life of that replica is as long as most windows.
      {.name = "restarts",
       .acts = all_of({kNodes, kServer, {kCancel, kSuspend, kDeletePod}}),
       .kills_every = seconds(30)},
      {.name = "heartbeat_restarts",
       .acts =
           all_of({kNodes, kServer, kHeartbeats, {kCancel, kSuspend, kDeletePod, kForceDeletePod}}),
       .kills_every = seconds(30),
       .heartbeats = true},
      {.name = "many_runs",
       .acts = all_of({kUsers,
                       kNodes,
                       kProcesses,
                       {kLoseRequest, kLoseAnswer, kDelayAnswer, kBreakWatch, kOutage, kForgePod}}),
       .draws_subset = true,
       .many_runs = true},
      {.name = "many_runs_heartbeats",
       .acts = all_of({kNodes,
                       kHeartbeats,
                       {kSuspend, kCancel, kEditSpec, kDeletePod, kCrash, kPause, kCleanRestart,
                        kLoseAnswer}}),
       .draws_subset = true,
       .heartbeats = true,
       .many_runs = true},
      {.name = "queues",
       .acts = all_of(
           {kUsers,
            kProcesses,
            {kWorkerFails, kEviction, kNodePowerLoss, kLoseRequest, kLoseAnswer, kDelayRequest,
             kDelayAnswer, kDuplicate, kRefuse503, kCutSilently, kSlowWatch, kBreakWatch,
             kWatchCacheLag, kOutage, kRestart, kEtcdStall, kNamespaceFails, kForgePod}}),
       .draws_subset = true,
       .queues = true},
      {.name = "queue_restore",
       .acts = all_of({{kRestore, kCrash, kCancel, kSuspend, kDeleteJob, kWorkerFails}}),
       .queues = true},
      {.name = "workers",
       .acts =
           all_of({kWorkers,
                   kProcesses,
                   {kEditSpec,      kSuspend,        kCancel,       kDeleteJob,     kRecreateJob,
                    kDeletePod,     kForceDeletePod, kQuota,        kWorkerFails,   kWorkerHangs,
                    kImageError,    kEviction,       kNodeSilent,   kNodePowerLoss, kNodeDeleted,
                    kLoseRequest,   kLoseAnswer,     kDelayRequest, kDelayAnswer,   kDuplicate,
                    kRefuse503,     kCutSilently,    kSlowWatch,    kHalfOpenWatch, kBreakWatch,
                    kWatchCacheLag, kOutage,         kRestart,      kEtcdStall}}),
       .draws_subset = true,
       .many_runs = true,
       .pools = true},
      // Workers that come back: containers that begin anew, nodes that were away, and Leases that
      // administrators edit.
      {.name = "worker_returns",
       .acts = all_of({{kRestartWorker, kEditHolder,     kEditWork,   kKillWorker,    kFreezeWorker,
                        kCutWorker,     kLossyWorkers,   kNodeSilent, kNodePowerLoss, kNodeDeleted,
                        kDeletePod,     kForceDeletePod, kEditPool,   kSuspend,       kCancel,
                        kCrash,         kCleanRestart,   kPause,      kLoseAnswer,    kDelayRequest,
                        kSlowWatch,     kOutage,         kRestart}}),
       .draws_subset = true,
       .many_runs = true,
       .pools = true},
      {.name = "worker_restore",
       .acts = all_of({{kRestore, kCrash, kCancel, kSuspend, kDeleteJob, kWorkerFails, kKillWorker,
                        kEditPool, kRestartWorker, kSendMessage}}),
       .many_runs = true,
       .pools = true},
      // As "restarts", with warm workers.
      {.name = "worker_restarts",
       .acts = all_of({{kKillWorker, kCutWorker, kFreezeWorker, kDeleteWorkerLease, kRestartWorker,
                        kEditHolder, kEditWork, kNodeSilent, kNodePowerLoss, kNodeDeleted,
                        kDeletePod, kForceDeletePod, kCancel, kSuspend, kOutage, kRestart}}),
       .draws_subset = true,
       .kills_every = seconds(25),
       .many_runs = true,
       .pools = true},
      // A roll-back in the middle of everything.
      {.name = "roll_back",
       .acts = all_of({kNewer,
                       kProcesses,
                       {kEditSpec, kSuspend, kCancel, kDeleteJob, kDeletePod, kWorkerFails,
                        kEviction, kNodePowerLoss, kQuota, kLoseRequest, kLoseAnswer, kDelayAnswer,
                        kRefuse503, kBreakWatch, kWatchCacheLag, kOutage}}),
       .many_runs = true,
       .queues = true,
       .pools = true},
      {.name = "volume",
       .acts = all_of({{kNodePowerLoss, kNodeDeleted, kEviction, kCrash, kCleanRestart, kLoseAnswer,
                        kBreakWatch, kRestart}}),
       .volume = 10'000},
      {.name = "lane",
       .acts = all_of({kBatchJobs,
                       kProcesses,
                       {kCancel,      kDeleteJob,     kRecreateJob,  kDeletePod,   kDeleteNamespace,
                        kQuota,       kWorkerFails,   kEviction,     kNodeSilent,  kNodePowerLoss,
                        kLoseRequest, kLoseAnswer,    kDelayRequest, kDelayAnswer, kDuplicate,
                        kRefuse429,   kRefuse503,     kCutSilently,  kSlowWatch,   kHalfOpenWatch,
                        kBreakWatch,  kWatchCacheLag, kCompaction,   kOutage,      kRestart,
                        kEtcdStall}}),
       .draws_subset = true,
       .lane = true},
      {.name = "guard",
       .acts = all_of({kProcesses,
                       {kSpoilGuard, kRefuse403, kRefuse500, kLoseAnswer, kOutage, kCutSilently,
                        kWorkerFails, kNodePowerLoss, kDeletePod, kSuspend, kCancel}}),
       .guard = true},
      {.name = "rescue",
       .acts = all_of({kNodes, kRequests, kWatches, kServer, kProcesses, kForbidding}),
       .draws_subset = true,
       .rescue = true},
      {.name = "rescue_restarts",
       .acts = all_of({kNodes, kServer}),
       .kills_every = seconds(30),
       .rescue = true},
  };
  return *kProfiles;
}

const Profile* find_profile(const std::string& name) {
  for (const Profile& profile : profiles()) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

Script draw_script(std::uint64_t seed, const Profile& profile, Duration length) {
  return Drawing(seed, profile, length).draw();
}

}  // namespace holdfast::simulation
