#include "operator/membership/member_lease.h"

#include <algorithm>

namespace holdfast::membership {
namespace {

using std::chrono::seconds;

constexpr seconds kGoodbyeLimit{3};
constexpr Duration kLongestCall = seconds(30);
constexpr int kSuffixLength = 5;

kube::CallOptions vital(Duration timeout) {
  kube::CallOptions options;
  options.timeout = timeout;
  options.urgency = http::Urgency::kVital;
  return options;
}

}  // namespace

MemberLease::MemberLease(LeaseRequests& requests, Random& random)
    : requests_(requests),
      loop_(requests.loop()),
      random_(random),
      log_(requests.log()),
      timings_(requests.config().timings),
      name_(new_name()) {}

// No vowels and no look-alikes, as Kubernetes' own generated names. A name is never used twice: a
// woken process must not take another's tenure for its own.
std::string MemberLease::new_name() {
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string name = requests_.config().id + "-";
  for (int i = 0; i < kSuffixLength; ++i) name += kAlphabet[random_.below(sizeof(kAlphabet) - 1)];
  return name;
}

void MemberLease::note(const JsonView& lease) {
  kube::Object meta;
  if (!kube::decode_meta(lease, meta)) return;
  uid_ = meta.uid;
  version_ = meta.version;
}

Task<Result<MemberLease::Step>> MemberLease::create() {
  const SteadyTime sent = loop_.now();
  auto post = requests_.create(member_lease_body(requests_.write(name_), name_),
                               vital(timings_.renew_deadline));
  const LeaseRequests::Answer answer = co_await post;
  if (answer) {
    note(*answer);
    log_.info("joined", {{"member", name_}, {"shards", std::to_string(requests_.config().shards)}});
    co_return Step{Step::Result::kAcknowledged, sent};
  }
  // Ours: an earlier answer was lost.
  if (answer.error().code == ErrorCode::kAlreadyExists) {
    auto again = reread(sent);
    co_return co_await again;
  }
  co_return answer.error();
}

Task<Result<MemberLease::Step>> MemberLease::renew(std::string steps_aside) {
  const SteadyTime sent = loop_.now();
  // If this try hangs, another one still fits into the time left.
  const Duration patience = std::max<Duration>(2 * timings_.retry_period, seconds(1));
  const Duration left = time_left();
  const Duration timeout = left > Duration::zero() ? std::min(patience, left) : patience / 2;
  LeaseWrite write = requests_.write(name_);
  write.uid = uid_;
  write.version = version_;
  write.steps_aside = std::move(steps_aside);
  auto put =
      requests_.replace(member_lease_name(name_), member_lease_body(write, name_), vital(timeout));
  const LeaseRequests::Answer answer = co_await put;
  if (answer) {
    note(*answer);
    note_aside(write.steps_aside);
    co_return Step{Step::Result::kAcknowledged, sent};
  }
  const ErrorCode code = answer.error().code;
  if (code != ErrorCode::kConflict && code != ErrorCode::kNotFound) co_return answer.error();
  auto again = reread(sent);
  co_return co_await again;
}

// After a lost answer, or after somebody wrote or deleted the Lease.
Task<Result<MemberLease::Step>> MemberLease::reread(SteadyTime sent) {
  auto get = requests_.get(member_lease_name(name_), vital(timings_.renew_deadline));
  const LeaseRequests::Answer answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  kube::Object meta;
  const bool is_there = answer && kube::decode_meta(*answer, meta);
  if (!is_there || (exists() && meta.uid != uid_)) co_return Step{Step::Result::kGone, sent};
  note(*answer);
  co_return Step{Step::Result::kReread, sent};
}

Task<void> MemberLease::remove() {
  // Sent even during a Retry-After: it is our last request, and saves the server a take-over.
  auto del = requests_.remove(member_lease_name(name_), uid_, 0, vital(kGoodbyeLimit));
  const LeaseRequests::Answer answer = co_await del;
  if (answer) log_.info("left", {{"member", name_}});
  uid_.clear();
}

void MemberLease::abandon() {
  uid_.clear();
  version_ = 0;
  steps_aside_.clear();
  renewed_at_ = SteadyTime{};
  name_ = new_name();
}

void MemberLease::note_aside(const std::string& why) {
  if (why.empty() != steps_aside_.empty()) {
    if (why.empty()) {
      log_.info("this replica takes shards again", {{"member", name_}});
    } else {
      log_.warn("this replica steps aside: others take its shards, if they can see",
                {{"member", name_}, {"why", why}});
    }
  }
  steps_aside_ = why;
}

void MemberLease::confirm(SteadyTime sent) {
  renewed_at_ = sent;
  was_confirmed_ = true;
}

Duration MemberLease::time_left() const {
  return is_claimed() ? deadline() - loop_.now() : Duration::zero();
}

kube::CallOptions MemberLease::within_time() const {
  kube::CallOptions options;
  options.timeout = std::clamp<Duration>(time_left(), std::chrono::milliseconds(1), kLongestCall);
  return options;
}

}  // namespace holdfast::membership
