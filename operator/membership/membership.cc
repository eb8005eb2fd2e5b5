// The member Lease: join, renew, lapse, leave. The shards are in membership_shards.cc.
#include "operator/membership/membership.h"

#include <algorithm>

#include "client/kube/lease_resource.h"
#include "core/pause.h"

namespace holdfast::controller {
namespace {

using std::chrono::seconds;

constexpr seconds kGoodbyeLimit{3};
constexpr Duration kLongestCall = seconds(30);
constexpr int kSuffixLength = 5;
// A shorter lapse moves no shards.
constexpr seconds kReadingPatience{3};
// How often a renewal is tried within a retry period after a lapse, when time matters most.
constexpr int kTriesAfterLapse = 4;

}  // namespace

const char* to_string(MembershipState state) {
  switch (state) {
    case MembershipState::kStarting:
      return "starting";
    case MembershipState::kJoining:
      return "joining";
    case MembershipState::kActing:
      return "acting";
    case MembershipState::kReading:
      return "reading";
    case MembershipState::kLapsed:
      return "lapsed";
    case MembershipState::kLeaving:
      return "leaving";
  }
  return "";
}

Membership::Membership(const Dependencies& dependencies, Config config, Handlers handlers)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      random_(dependencies.random),
      log_(dependencies.log),
      config_(std::move(config)),
      handlers_(std::move(handlers)),
      leases_({loop_, client_, random_, log_}, lease_kind(kLeaseLabel), {config_.namespace_}),
      cached_(leases_),
      self_(new_name()),
      shards_(static_cast<std::size_t>(config_.shards)) {
  cached_.on_change([this](const auto& change) { on_lease(change); });
  leases_.on_progress([this] {
    update_clock();
    evaluate_soon();
  });
}

Membership::~Membership() {
  loop_.cancel(tick_timer_);
  loop_.cancel(lapse_timer_);
}

// No vowels and no look-alikes, as Kubernetes' own generated names. A name is never used twice: a
// woken process must not take another's tenure for its own.
std::string Membership::new_name() {
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string name = config_.id + "-";
  for (int i = 0; i < kSuffixLength; ++i) name += kAlphabet[random_.below(sizeof(kAlphabet) - 1)];
  return name;
}

std::string Membership::path(const std::string& name) const {
  if (name.empty())
    return kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_);
  return kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_, name);
}

LeaseWrite Membership::lease_write(const std::string& holder, Duration duration) const {
  LeaseWrite write;
  write.namespace_ = config_.namespace_;
  write.holder = holder;
  write.shards = config_.shards;
  write.duration = duration;
  write.now = client_.server_clock().now(loop_.now());
  return write;
}

void Membership::join() {
  if (state_ != State::kStarting) return;
  state_ = State::kJoining;
  tick();
}

void Membership::tick() {
  Duration next = config_.timings.retry_period;
  const Duration wait = not_before_ - loop_.now();
  if (wait > Duration::zero()) next = std::min(next, wait);
  tick_timer_ = loop_.call_after(next, [this] { tick(); });
  update_clock();
  beat_if_allowed();
  evaluate_soon();
  keep_records();
  tidy();
}

void Membership::beat_if_allowed() {
  if (!beating_ && loop_.now() >= not_before_) spawn(beat());
}

Task<void> Membership::beat() {
  beating_ = true;
  Status done = Unit{};
  if (uid_.empty()) {
    auto check = check_shards();
    done = co_await check;
    if (done && state_ != State::kLeaving) {
      auto create = create_member();
      done = co_await create;
    }
  } else {
    auto task = renew();
    done = co_await task;
  }
  beating_ = false;
  if (!done) heed(done.error(), loop_.now(), not_before_);
  if (!done && state_ == State::kLapsed) {
    loop_.cancel(tick_timer_);
    tick_timer_ =
        loop_.call_after(config_.timings.retry_period / kTriesAfterLapse, [this] { tick(); });
  }
  if (!done && state_ != State::kLeaving) tell("the member Lease is not renewed", done.error());
  if (state_ == State::kLeaving) spawn(say_goodbye());
}

void Membership::tell(const char* what, const Error& error) {
  if (error.code == ErrorCode::kCancelled || error.message == last_trouble_) return;
  last_trouble_ = error.message;
  Log::Fields fields = {{"member", self_}, {"error", error.message}};
  if (error.code == ErrorCode::kNotFound) {
    fields.emplace_back("what_to_do", "create the namespace " + config_.namespace_ +
                                          ", or name another by --namespace");
  }
  log_.warn(what, fields);
}

// The replica that creates shard 0's Lease records the number of shards.
Task<Status> Membership::check_shards() {
  const std::string name = shard_lease_name(0);
  if (!cached_.get(config_.namespace_ + "/" + name)) {
    const LeaseWrite write = lease_write("", config_.timings.lease_duration);
    auto post = client_.post(path(), shard_lease_body(write, 0));
    const Result<JsonDocument> created = co_await post;
    if (created) co_return Unit{};
    if (created.error().code != ErrorCode::kAlreadyExists) co_return created.error();
  }
  auto get = client_.get(path(name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  const auto lease = decode_lease(*answer);
  if (!lease) {
    co_return make_error(
        ErrorCode::kTerminal,
        "Lease " + name + " in namespace " + config_.namespace_ + " is not Holdfast's: delete it");
  }
  if (refuse_wrong_number(*lease)) {
    co_return make_error(ErrorCode::kCancelled, "another number of shards");
  }
  if (lease->shards == 0) {
    co_return make_error(ErrorCode::kTerminal,
                         "Lease " + name + " in namespace " + config_.namespace_ +
                             " does not say how many shards the installation has: annotate it with "
                             "holdfast.dev/shards=NUMBER, or, when no replica runs, delete it");
  }
  co_return Unit{};
}

bool Membership::refuse_wrong_number(const CachedLease& lease) {
  // Somebody removed the annotation. That does not mean another number.
  if (lease.shards == 0) return false;
  if (lease.shards == config_.shards || lease.kind != CachedLease::Kind::kShard) return false;
  const std::string ours = std::to_string(config_.shards);
  const std::string theirs = std::to_string(lease.shards);
  handlers_.refuse(make_error(
      ErrorCode::kInvalid,
      "this installation has " + theirs + " shards (Lease " + lease.name + " in namespace " +
          config_.namespace_ + " says so), and --shards is " + ours + ": start with --shards " +
          theirs + ", or, to change it, stop all replicas, run `kubectl delete leases -n " +
          config_.namespace_ + " -l " + kLeaseLabel + "`, and start them with --shards " + ours));
  return true;
}

void Membership::set_version(const JsonView& member) {
  kube::Object meta;
  if (!kube::decode_meta(member, meta)) return;
  uid_ = meta.uid;
  version_ = meta.version;
}

Task<Status> Membership::create_member() {
  const SteadyTime sent = loop_.now();
  kube::CallOptions options;
  options.timeout = config_.timings.renew_deadline;
  options.urgency = http::Urgency::kVital;
  const LeaseWrite write = lease_write(self_, config_.timings.lease_duration);
  auto post = client_.post(path(), member_lease_body(write, self_), options);
  const Result<JsonDocument> answer = co_await post;
  if (answer) {
    set_version(*answer);
    log_.info("joined", {{"member", self_}, {"shards", std::to_string(config_.shards)}});
    renewed(sent);
    co_return Unit{};
  }
  // Ours: an earlier answer was lost.
  if (answer.error().code == ErrorCode::kAlreadyExists) {
    auto reread = reread_member();
    co_return co_await reread;
  }
  co_return answer.error();
}

Task<Status> Membership::renew() {
  constexpr int kTries = 2;
  for (int i = 0; i < kTries; ++i) {
    const SteadyTime sent = loop_.now();
    kube::CallOptions options;
    // If this try hangs, another one still fits into the time left.
    const Duration patience = std::max<Duration>(2 * config_.timings.retry_period, seconds(1));
    const Duration left = time_left();
    options.timeout = left > Duration::zero() ? std::min(patience, left) : patience / 2;
    options.urgency = http::Urgency::kVital;
    LeaseWrite write = lease_write(self_, config_.timings.lease_duration);
    write.uid = uid_;
    write.version = version_;
    write.steps_aside = reason_to_step_aside();
    auto put =
        client_.put(path(member_lease_name(self_)), member_lease_body(write, self_), options);
    const Result<JsonDocument> answer = co_await put;
    if (answer) {
      set_version(*answer);
      stepped_aside(write.steps_aside);
      renewed(sent);
      co_return Unit{};
    }
    const ErrorCode code = answer.error().code;
    if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound) co_return answer.error();
    auto reread = reread_member();
    const Status known = co_await reread;
    if (!known || uid_.empty()) co_return known;
  }
  co_return make_error(ErrorCode::kConflict, "somebody else writes our member Lease");
}

// After a lost answer, or after somebody wrote or deleted the Lease.
Task<Status> Membership::reread_member() {
  kube::CallOptions options;
  options.timeout = config_.timings.renew_deadline;
  options.urgency = http::Urgency::kVital;
  auto get = client_.get(path(member_lease_name(self_)), options);
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  kube::Object meta;
  const bool is_there = answer && kube::decode_meta(*answer, meta);
  if (is_there && (uid_.empty() || meta.uid == uid_)) {
    set_version(*answer);
  } else {
    rejoin_as_new("our member Lease is gone");
  }
  co_return Unit{};
}

void Membership::renewed(SteadyTime sent) {
  const SteadyTime now = loop_.now();
  // A process that was paused notices it here at the latest.
  if (state_ == State::kActing || state_ == State::kReading) {
    if (time_left() <= Duration::zero())
      lapse("our last renewal was older than the renew deadline");
  }
  renewed_at_ = sent;
  has_joined_ = true;
  last_trouble_.clear();
  update_clock();
  clock_.proof(now);
  handlers_.proof();
  if (time_left() <= Duration::zero()) return;  // its answer took too long
  loop_.cancel(lapse_timer_);
  lapse_timer_ = loop_.call_at(renewed_at_ + config_.timings.renew_deadline, [this] {
    lapse_timer_ = 0;
    lapse("our member Lease could not be renewed within the renew deadline");
  });
  if (state_ == State::kLapsed) {
    read_world();
  } else if (state_ == State::kJoining) {
    state_ = State::kActing;
  }
  evaluate_soon();
}

void Membership::lapse(const char* why) {
  ++tenure_;
  for (int shard = 0; shard < config_.shards; ++shard) {
    if (shards_[static_cast<std::size_t>(shard)].held) drop(shard, "lapsed");
  }
  if (state_ != State::kActing && state_ != State::kReading) return;
  state_ = State::kLapsed;
  log_.warn("this replica stops acting", {{"member", self_}, {"why", why}});
}

void Membership::rejoin_as_new(const char* why) {
  lapse(why);
  uid_.clear();
  version_ = 0;
  aside_.clear();
  renewed_at_ = SteadyTime{};
  self_ = new_name();
}

void Membership::read_world() {
  state_ = State::kReading;
  reading_since_ = loop_.now();
  handlers_.refresh([this, tenure = tenure_] {
    if (tenure == tenure_ && state_ == State::kReading) world_read();
  });
}

void Membership::world_read() {
  state_ = State::kActing;
  log_.info("this replica acts again", {{"member", self_}});
  evaluate_soon();
  // The others plan without us until our Lease says that we are back.
  if (!aside_.empty()) beat_if_allowed();
}

std::string Membership::reason_to_step_aside() const {
  Duration patience = config_.timings.renew_deadline;
  if (state_ == State::kReading) {
    if (loop_.now() - reading_since_ < kReadingPatience) return "";
    patience = Duration::zero();
  } else if (state_ != State::kActing) {
    return aside_;
  }
  const std::string unseen = handlers_.unseen ? handlers_.unseen(patience) : "";
  return unseen.empty() && state_ == State::kReading ? "it reads everything again" : unseen;
}

void Membership::stepped_aside(const std::string& why) {
  if (why.empty() != aside_.empty()) {
    if (why.empty()) {
      log_.info("this replica takes shards again", {{"member", self_}});
    } else {
      log_.warn("this replica steps aside: others take its shards, if they can see",
                {{"member", self_}, {"why", why}});
    }
  }
  aside_ = why;
}

void Membership::leave(std::function<void()> left) {
  state_ = State::kLeaving;
  left_ = std::move(left);
  loop_.cancel(tick_timer_);
  loop_.cancel(lapse_timer_);
  for (int shard = 0; shard < config_.shards; ++shard) {
    if (shards_[static_cast<std::size_t>(shard)].held) drop(shard, "released");
  }
  if (!beating_) spawn(say_goodbye());
}

Task<void> Membership::say_goodbye() {
  if (!uid_.empty()) {
    // Sent even during a Retry-After: it is our last request, and saves the server a take-over.
    kube::CallOptions options;
    options.timeout = kGoodbyeLimit;
    options.urgency = http::Urgency::kVital;
    const Json body = {
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid_}}}};
    auto del = client_.del(path(member_lease_name(self_)), body.dump(), options);
    const Result<JsonDocument> answer = co_await del;
    if (answer) log_.info("left", {{"member", self_}});
    uid_.clear();
  }
  const auto left = std::exchange(left_, nullptr);
  if (left) loop_.post(left);
}

Duration Membership::time_left() const {
  if (renewed_at_ == SteadyTime{}) return Duration::zero();
  return renewed_at_ + config_.timings.renew_deadline - loop_.now();
}

kube::CallOptions Membership::within_time() const {
  kube::CallOptions options;
  options.timeout = std::clamp<Duration>(time_left(), std::chrono::milliseconds(1), kLongestCall);
  return options;
}

}  // namespace holdfast::controller
