#include "tests/simulation/crash_trial.h"

#include <algorithm>
#include <utility>

#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kSeed = 20;
constexpr int kShards = 4;
constexpr int kNodes = 3;
constexpr const char* kQueue = "queue";
constexpr const char* kPool = "pool";
constexpr milliseconds kTick{500};
constexpr seconds kRestartsAfter{1};
constexpr seconds kLateCopy{3};
constexpr seconds kRetryPeriod{2};
// A lost answer may hold a call for 30 s, a take-over and a window come after.
constexpr minutes kLimit{6};

std::string job_name(int job) { return "job-" + std::to_string(job); }

}  // namespace

Trial::Trial(Options options)
    : options_(std::move(options)),
      scenario_(*options_.scenario),
      server_([this] { return built_ ? gateway_.wall_clock() : Gateway::beginning(); },
              mix(kSeed, 1)),
      gateway_(scheduler_, server_, mix(kSeed, 2)),
      network_(scheduler_, gateway_, strikes_, mix(kSeed, 3)),
      cluster_(scheduler_, gateway_, strikes_, mix(kSeed, 4)),
      workers_(scheduler_, gateway_, cluster_, strikes_, mix(kSeed, 5)),
      ledger_(scheduler_, gateway_, cluster_, workers_),
      users_(scheduler_, gateway_, ledger_, strikes_),
      others_(scheduler_, gateway_),
      liveness_(scheduler_, gateway_, cluster_, network_, ledger_, workers_) {
  built_ = true;
  wire_up();
}

Trial::~Trial() = default;

void Trial::wire_up() {
  cluster_.agents(&workers_);
  workers_.complain = [this](const std::string& what) { complain(what); };
  workers_.plan_of = [this](const AttemptId&) { return std::optional(next_plan()); };
  ledger_.receivers(receivers_);
  ledger_.shards(kShards);
  ledger_.on_violation = [this] {
    trace("VIOLATION " + ledger_.violation());
    scheduler_.stop();
  };
  server_.on_applied([this](const Applied& write) { applied(write); });
  network_.on_send = [this](const Delivery& delivery) {
    if (std::exchange(marks_next_, false)) marked_ = delivery;
    ledger_.sent(delivery);
  };
  network_.on_answer = [this](const Delivery& delivery, const ApiAnswer& answer) {
    const bool lost = marked_ && marked_->number == delivery.number && options_.point &&
                      (options_.point->mishap == Mishap::kAnswerLost ||
                       options_.point->mishap == Mishap::kAnswerLostSilently);
    if (!lost) ledger_.answered(delivery, answer);
  };
  gateway_.before_request = [this](const Delivery& delivery) { arrived(delivery); };
  gateway_.after_request = [this](const Delivery& delivery, const ApiAnswer& answer) {
    if (traces())
      trace("  " + delivery.request.user + " " + delivery.request.method + " " +
            delivery.request.target + " -> " + std::to_string(answer.status) +
            (delivery.copy != 0 ? " (second delivery)" : ""));
    ledger_.handled(delivery, answer);
    arriving_ = nullptr;
    handled(delivery);
  };
  cluster_.on_overlap = [this](const std::string& what) { complain("S22 OnePlace: " + what); };
  cluster_.work_of = [this](const std::string& pod) {
    const std::string job = pod.substr(0, pod.find('-', pod.find('-') + 1));
    const auto started = static_cast<std::size_t>(pods_started_[job]++);
    return std::optional(scenario_.works[std::min(started, scenario_.works.size() - 1)]);
  };
}

void Trial::trace(const std::string& line) {
  if (options_.hashes) {
    trace_hash_ = mix(trace_hash_, reconciler::hash64(line));
    trace_hash_ = mix(trace_hash_, static_cast<std::uint64_t>(scheduler_.now().count()));
  }
  if (!options_.trace) return;
  std::fprintf(options_.trace, "%12.6f %s\n", to_seconds(scheduler_.now()), line.c_str());
}

void Trial::applied(const Applied& write) {
  const Json& object = write.after ? *write.after : *write.before;
  const std::string name = string_at(at(object, "metadata"), "name");
  if (arriving_ && arriving_->replica >= 0 && !name.starts_with("holdfast-member-")) {
    ++restless_writes_;
    last_restless_ = write.resource + " " + key_of(object);
  }
  if (write.resource == "durablejobs") jobs_[name] = object;
  if (traces()) {
    const Json& status = at(object, "status");
    if (write.resource == "jobqueues") trace("queue " + status.dump());
    trace(write.resource + " " + key_of(object) + (write.after ? " " : " gone ") +
          string_at(status, "phase") + " " + std::to_string(int_at(status, "attempt")) + " [" +
          string_at(at(status, "waiting"), "reason") + "]" +
          string_at(at(object, "spec"), "holderIdentity"));
  }
  ledger_.applied(write);
  gateway_.changed();
  if (write.resource == "pods") cluster_.pod_changed(write.before, write.after);
  scheduler_.after(Duration::zero(), [this] { take_steps(); });
}

// ---- The mishap.

std::optional<Mishap> Trial::leaves(int replica, const std::string& method,
                                    const std::string& target) {
  auto& calls = calls_[static_cast<std::size_t>(replica)];
  calls.push_back(call_of(method, target));
  const auto& point = options_.point;
  if (!point || point->replica != replica || point->call + 1 != calls.size()) return std::nullopt;
  struck_ = true;
  trace("MISHAP " + std::string(to_string(point->mishap)) + ": " + method + " " + target);
  // What is due meanwhile comes late; from its end on the bounds hold.
  if (!is_duplicate(point->mishap)) liveness_.watch(false);
  on_lease_ = target.find("/leases") != std::string::npos;
  return point->mishap;
}

void Trial::goes_out(int, Mishap, const std::string& target) {
  if (is_watch(target)) {
    marked_watch_ = target;
  } else {
    marks_next_ = true;
  }
}

// What it held up is tried again: a request for a Lease, and a replica's start, at the next retry
// period; from there on the bounds hold.
void Trial::is_over() {
  mishap_over_ = true;
  const Seat& seat = seats_[static_cast<std::size_t>(options_.point->replica)];
  if (!on_lease_ && seat.replica && seat.replica->synced()) return liveness_.watch(true);
  scheduler_.after(kRetryPeriod, [this] {
    liveness_.replica_changed();
    liveness_.watch(true);
  });
}

void Trial::dies(int replica) {
  // Not from inside one of its turns.
  scheduler_.after(Duration::zero(), [this, replica] { crash(replica); });
}

void Trial::arrived(const Delivery& delivery) {
  arriving_ = &delivery;
  ledger_.arrives(delivery);
  if (!options_.point || delivery.replica != options_.point->replica) return;
  if (!marked_watch_.empty() && delivery.request.target == marked_watch_) {
    marked_watch_.clear();
    arriving_ = nullptr;
    if (options_.point->mishap == Mishap::kCrashApplied) dies(delivery.replica);
  }
}

void Trial::handled(const Delivery& delivery) {
  if (!marked_ || marked_->number != delivery.number || !options_.point) return;
  const bool copy = delivery.copy != 0;
  switch (options_.point->mishap) {
    case Mishap::kCrashApplied:
      return dies(delivery.replica);
    case Mishap::kDuplicateAtOnce:
      if (!copy) {
        version_at_mark_ = server_.version();
        return duplicate(Duration::zero());
      }
      if (server_.version() != version_at_mark_) {
        complain("S9 Idempotence: a second delivery changes something: " + delivery.request.method +
                 " " + delivery.request.target);
      }
      mishap_over_ = true;
      return;
    case Mishap::kDuplicateLate:
      if (!copy) return duplicate(kLateCopy);
      mishap_over_ = true;
      return;
    default:
      return;
  }
}

void Trial::duplicate(Duration delay) {
  Delivery copy = *marked_;
  copy.copy = 1;
  const auto arrive = [this, copy] { gateway_.arrive(copy, [](std::optional<ApiAnswer>) {}); };
  if (delay > Duration::zero()) {
    scheduler_.after(delay, arrive);
  } else {
    arrive();
  }
}

// ---- Replicas.

void Trial::start_replica(int index) {
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  seat.awaited = false;
  if (seat.replica) return;
  Replica::Config config;
  config.index = index;
  config.life = ++seat.lives;
  config.seed = mix(mix(kSeed, 5), mix(static_cast<std::uint64_t>(index), seat.lives));
  config.clock.offset = std::chrono::hours(1 + index);
  config.receivers = &receivers_;
  config.shards = kShards;
  config.rescues = scenario_.others;
  config.log = options_.log.with({{"replica", std::to_string(index)}});
  config.on_hot_loop = [this] { complain("a hot loop"); };
  config.on_refusal = [this](const Error& error) {
    complain("a replica refuses to work: " + error.message);
  };
  config.between = [&tap = static_cast<WireTap&>(*this), index](Loop& loop,
                                                                http::Transport& network) {
    return std::make_unique<TappedWire>(tap, index, loop, network);
  };
  trace("replica " + std::to_string(index) + " starts");
  seat.replica = std::make_unique<Replica>(scheduler_, network_, std::move(config));
  liveness_.replica_changed();
}

void Trial::crash(int index) {
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  if (!seat.replica) return;
  trace("replica " + std::to_string(index) + " crashes");
  seat.replica.reset();
  vacated(index);
}

// Another takes over, if there is one; else it is started again, under a new member's name.
void Trial::vacated(int index) {
  liveness_.replica_changed();
  // Nobody is left who could learn of it.
  if (struck_ && options_.point->replica == index) mishap_over_ = true;
  if (!struck_ || mishap_over_) liveness_.watch(true);
  const bool another = std::any_of(seats_.begin(), seats_.end(),
                                   [](const Seat& seat) { return seat.replica || seat.awaited; });
  if (another) return;
  seats_[static_cast<std::size_t>(index)].awaited = true;
  scheduler_.after(kRestartsAfter, [this, index] { start_replica(index); });
}

int Trial::owner() const {
  const auto job = jobs_.find(job_name(0));
  if (job == jobs_.end()) return -1;
  const std::string key = ledger_.permits().shard_keys(uid_of(job->second)).front();
  const std::string shard = membership::shard_lease_name(reconciler::shard_of(key, kShards));
  const Json* const lease = server_.find("leases", "holdfast-system", shard);
  if (!lease) return -1;
  const auto life = ledger_.life_of(string_at(at(*lease, "spec"), "holderIdentity"));
  if (!life) return -1;
  const Seat& seat = seats_[static_cast<std::size_t>(life->first)];
  return seat.replica && seat.lives == life->second ? life->first : -1;
}

void Trial::crash_owner() {
  if (const int index = owner(); index >= 0) crash(index);
}

void Trial::stop_owner() {
  const int index = owner();
  if (index < 0) return;
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  trace("replica " + std::to_string(index) + " is told to stop");
  seat.replica->stop([this, index, life = seat.lives] {
    Seat& left = seats_[static_cast<std::size_t>(index)];
    if (left.lives != life || !left.replica) return;
    trace("replica " + std::to_string(index) + " has stopped");
    left.replica.reset();
    vacated(index);
  });
}

// ---- The run.

void Trial::set_up() {
  receivers_.heal();
  users_.start({});
  cluster_.start(kNodes);
  if (scenario_.others) others_.start(kSeed, {"hasty", "claim", "unlabelled"});
  seats_.resize(static_cast<std::size_t>(options_.replicas));
  calls_.resize(seats_.size());
  const int first =
      scenario_.replicas_at_start == 0 ? options_.replicas : scenario_.replicas_at_start;
  for (int i = 0; i < options_.replicas; ++i) ledger_.clock_rate(i, 1'000'000);
  for (int i = 0; i < first; ++i) {
    seats_[static_cast<std::size_t>(i)].awaited = true;
    scheduler_.after(milliseconds(100 + 150 * i), [this, i] { start_replica(i); });
  }
  // Caches are up to date.
  ledger_.permits().check_order(!options_.point);
  for (int i = 0; i < scenario_.jobs; ++i) {
    scheduler_.after(milliseconds(2600 + 10 * i), [this, i] {
      if (i == 0) {
        for (const auto& calls : calls_) before_jobs_.push_back(calls.size());
        if (!scenario_.queue.is_null()) make_queue(scenario_.queue);
        if (!scenario_.pool.is_null() &&
            !users_.create_pool(kNamespaces[0], kPool, drawn_pool(kSeed, scenario_.pool))) {
          complain("the pool is not accepted");
        }
      }
      if (!users_.create(kNamespaces[0], job_name(i), spec_of(i))) {
        complain("the job is not accepted");
      }
    });
  }
  liveness_.watch(true);
  tick();
}

WarmWorker::Plan Trial::next_plan() {
  const auto& works = scenario_.works;
  const Cluster::Work& work = works[std::min(commands_started_++, works.size() - 1)];
  WarmWorker::Plan plan;
  plan.lasts = work.lasts;
  plan.exit_code = work.exit_code;
  plan.sigterm_takes = work.sigterm_takes;
  return plan;
}

Json Trial::spec_of(int job) const {
  Json spec = drawn_spec(kSeed);
  spec = {{"template", spec["template"]},
          {"backoffLimit", 3},
          {"retryBackoff",
           {{"initialSeconds", 1}, {"factor", 1}, {"maxSeconds", 60}, {"jitterPercent", 0}}},
          {"startDeadlineSeconds", 60},
          {"lostAfterSeconds", 15}};
  Json& pod = spec["template"]["spec"];
  pod["terminationGracePeriodSeconds"] = 2;
  for (const char* drawn : {"schedulerName", "schedulingGates"}) pod.erase(drawn);
  if (!scenario_.pool.is_null()) {
    spec.erase("template");
    spec["workerPool"] = {{"name", kPool}};
  }
  spec.merge_patch(scenario_.spec);
  if (scenario_.place) {
    spec["queue"] = scenario_.place(job);
    spec["queue"]["name"] = kQueue;
  }
  if (!spec.contains("stages")) return spec;
  for (Json& stage : spec["stages"]) {
    for (const char* same :
         {"template", "retryBackoff", "startDeadlineSeconds", "lostAfterSeconds"}) {
      stage[same] = spec[same];
    }
  }
  return spec;
}

void Trial::make_queue(const Json& spec) {
  if (!users_.create_queue(kNamespaces[0], kQueue, spec)) complain("the queue is not accepted");
}

void Trial::tick() {
  scheduler_.after(kTick, [this] { tick(); });
  while (server_.collect_garbage()) continue;
  if (scheduler_.now() / kTick % 120 == 0) server_.send_bookmarks();
  std::vector<Replica*> replicas;
  for (const Seat& seat : seats_) {
    if (seat.replica) replicas.push_back(seat.replica.get());
  }
  liveness_.look(replicas);
  take_steps();
}

void Trial::take_steps() {
  if (step_pending_ || next_step_ == scenario_.steps.size()) return;
  const Scenario::Step& step = scenario_.steps[next_step_];
  if (!step.when(*this)) return;
  step_pending_ = true;
  scheduler_.after(step.after, [this, &step] {
    trace("step " + std::to_string(next_step_));
    step_pending_ = false;
    ++next_step_;
    step.act(*this);
    take_steps();
  });
}

bool Trial::run_part(Duration length) {
  scheduler_.run_until(scheduler_.now() + length);
  return ledger_.violation().empty();
}

Trial::Result Trial::run() {
  set_up();
  Result result;
  std::vector<std::size_t> enumerated;
  while (run_part(milliseconds(500))) {
    const std::string unfinished = this->unfinished();
    if (unfinished.empty()) break;
    if (scheduler_.now() > kLimit) complain("L1: it does not come to its end: " + unfinished);
  }
  for (const auto& calls : calls_) enumerated.push_back(calls.size());
  if (ledger_.violation().empty()) check_end();
  if (ledger_.violation().empty()) check_rest();
  result.violation = ledger_.violation();
  result.struck = struck_;
  for (std::size_t i = 0; i < enumerated.size(); ++i) calls_[i].resize(enumerated[i]);
  result.calls = std::move(calls_);
  calls_.resize(seats_.size());
  result.before_jobs = before_jobs_;
  result.simulated = scheduler_.now();
  result.trace_hash = trace_hash_;
  result.slowest = liveness_.slowest();
  for (Seat& seat : seats_) seat.replica.reset();
  return result;
}

}  // namespace holdfast::simulation
