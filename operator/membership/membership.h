// This replica's place among the others: its member Lease, and the shards that it holds.
//
// - join. The replica checks the installation's number of shards, or records it. Then it creates a
//   member Lease with a unique name.
// - renew. Every retry period, by compare-and-swap. The age of the claim counts from when the last
//   acknowledged renewal was SENT. After the renew deadline the replica holds nothing.
// - lapse. The renew deadline has passed, or our member Lease is gone. The replica drops all shards
//   at once. It works again once a renewal has succeeded, it has read everything again, and it has
//   taken each shard again.
// - take. Only an acknowledged compare-and-swap on the shard's Lease takes a shard. To take it from
//   a dead member, that member's Lease must not have changed for its duration, and a live read must
//   confirm this. The duration counts on our steady clock, and only while the watch is live and our
//   renewals succeed.
// - step aside. A member that cannot see what it needs says so on its member Lease. It then gets no
//   shards, and gives up its own, as long as another member can see.
// - record. Each write of a shard's Lease also records the silences that the holder has seen. While
//   there are silent subjects, the holder writes at least every 10 s. The next owner continues from
//   the record.
// - wait. The replica obeys the API server's Retry-After for all Leases, renewals included. Its
// claim
//   may lapse meanwhile. That is safe: the others take over. An overloaded server has asked for
//   fewer requests, and more of them would get the same answer. While a shard's Lease cannot be
//   written, the replica still works on its jobs.
// - leave. The replica finishes the work in hand and deletes its member Lease. That frees its
// shards.
//
// reconciler::decide_shards() decides about each shard. Loop only. Destroy it when the client is
// idle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "core/task.h"
#include "operator/membership/lease_codec.h"
#include "operator/membership/ownership.h"
#include "reconciler/shards.h"
#include "reconciler/staleness.h"

namespace holdfast::controller {

// kStarting: before join(). kReading: it reads everything again after a lapse.
enum class MembershipState { kStarting, kJoining, kActing, kReading, kLapsed, kLeaving };
const char* to_string(MembershipState state);

// For /debug/ownership and metrics: who owns what, and why.
struct OwnershipReport {
  struct Member {
    std::string name;
    bool alive = false;
    std::string steps_aside;  // why; empty: it does not
    Duration silent{0};       // since its Lease last changed; counts live time only
  };
  struct Shard {
    std::string holder;
    std::string planned;
    bool held = false;
    std::string why;
  };
  std::string self;
  MembershipState state = MembershipState::kStarting;
  Duration renewal_age{0};
  Duration renew_deadline{0};
  std::vector<Member> members;
  std::vector<Shard> shards;
};

class Membership : public Ownership {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
  };
  struct Config {
    std::string namespace_ = "holdfast-system";
    std::string id = "holdfast-operator";
    int shards = 32;
    reconciler::MemberTimings timings;
  };
  struct Handlers {
    // The shard is ours from now on. Forget earlier knowledge about its jobs.
    std::function<void(int shard)> gained;
    // The hand-over was cancelled; the shard stays ours. Jobs that came due meanwhile were refused,
    // so look at them again.
    std::function<void(int shard)> kept;
    // The shard is no longer ours. `why` is a short word for a metric.
    std::function<void(int shard, const char* why)> lost;
    // The shard will be handed over once its work in hand has ended. May be null.
    std::function<void(int shard)> draining = nullptr;
    // Reads everything again, consistently, and then calls `done`.
    std::function<void(std::function<void()> done)> refresh;
    // What this replica has not seen for `patience`, for humans; empty: it sees everything. May be
    // null.
    std::function<std::string(Duration patience)> unseen = nullptr;
    // A renewal of ours succeeded: the API server and its storage answer.
    std::function<void()> proof;
    // The membership can never go on.
    std::function<void(Error error)> refuse;
    // The shards that this member has or may have soon. Runs when they change. May be null.
    std::function<void(const std::set<int>& shards)> wanted = nullptr;
    // record: the windows to write into a shard's Lease; none: not known, so keep the old ones. The
    // handler `recorded` gets the windows that another member wrote there (window_keeper.h). Either
    // may be null.
    std::function<std::optional<std::string>(int shard)> record = nullptr;
    std::function<void(const std::string& windows)> recorded = nullptr;
  };
  Membership(const Dependencies& dependencies, Config config, Handlers handlers);
  ~Membership() override;

  // The caller starts the caches and waits for them; call join() once they are synced.
  cache::Informer& leases() { return leases_; }
  void join();
  // The replica will leave: begin nothing new and take no shard. Work in hand may go on.
  void take_no_more() { takes_no_more_ = true; }
  // Call it when no reconcile is in flight. `left` runs once the member Lease is deleted, or could
  // not be deleted within the limit.
  void leave(std::function<void()> left);

  // Work for the shard is in hand: the shard is not handed over while one of these exists. Each
  // must be destroyed before the membership.
  std::shared_ptr<void> keep(int shard);

  // Keys: reconciler::shard_key().
  int shard_of(const std::string& key) const;
  // True while the key's shard is held, even if it will be handed over.
  bool holds(const std::string& key) const;
  bool holds_shard(int shard) const;
  bool is_draining(int shard) const;
  // The shard of a pod: by its label, or else by the UID of its job.
  int shard_of_pod(const std::string& label, const std::string& job_uid) const;
  std::string shard_label(int shard) const override;
  std::optional<Claim> claim(const std::string& key) const override;
  std::optional<Claim> claim_shard(int shard) const;
  bool covers(const Claim& claim, const std::string& key) const override {
    return claim.shard == shard_of(key);
  }
  bool holds(const Claim& claim) const override;
  Duration time_left() const override;
  // How long a dead replica's shards may be held by nobody: after that its intents get no pods.
  Duration takeover() const {
    return config_.timings.lease_duration + config_.timings.retry_period;
  }

  // The API server's data was set back: the answers to our own writes no longer count.
  void time_travelled();

  // The name of our member Lease: no other member has ever had it.
  const std::string& self() const { return self_; }

  // True once it has been a member. Before, a permission or the namespace may be missing.
  bool has_joined() const { return has_joined_; }
  OwnershipReport report();
  int shards_held() const;

 private:
  using State = MembershipState;
  struct Shard {
    bool held = false;
    bool draining = false;
    bool pending = false;
    std::uint64_t tenure = 0;  // how often it was gained
    // The answer to our last write of its Lease. The cache counts once it is as new.
    LeasePtr written;
    std::string why;
    std::string planned;
    SteadyTime recorded_at{};  // when its windows were last written here
    int kept = 0;              // the results of keep() that exist
    int unseen = 0;            // creations in a row that found a Lease unknown to the watch
  };

  void tick();
  void beat_if_allowed();
  Task<void> beat();
  Task<Status> check_shards();
  Task<Status> create_member();
  Task<Status> renew();
  Task<Status> reread_member();
  void renewed(SteadyTime sent);
  void lapse(const char* why);
  void rejoin_as_new(const char* why);
  void read_world();
  void world_read();
  std::string reason_to_step_aside() const;
  void stepped_aside(const std::string& why);
  bool refuse_wrong_number(const CachedLease& lease);
  std::string new_name();
  void update_clock();

  void on_lease(const cache::View<CachedLease>::Change& change);
  bool evaluates() const;
  void evaluate_soon();
  void evaluate();
  reconciler::ShardsView view();
  bool member_alive(const CachedLease& member);
  bool is_soon_dead(const CachedLease& member);
  Duration silent_for(const CachedLease& member);
  bool room() const;  // one more shard Lease may be written now
  bool shards_wait() const;
  void heed_shards(const Result<JsonDocument>& answer);
  void carry_out(int shard, const reconciler::ShardDecision& decision);
  void work_ended(int shard);
  // `before`: the Lease that the decision was based on; null: none.
  Task<void> take(int shard, LeasePtr before);
  Task<void> take_over(int shard);
  Task<bool> holder_is_dead(std::string holder);
  Task<void> release(int shard);
  void keep_records();
  Task<void> write_record(int shard, LeasePtr before, std::string windows);
  void note_written(Shard& ours, const JsonView& answer);
  std::string windows_of(int shard, const CachedLease* before) const;
  void tell_wanted();
  void drop(int shard, const char* why);
  void tidy();
  Task<void> delete_member(std::string name, std::string uid, std::uint64_t version);
  Task<void> say_goodbye();

  LeasePtr shard_lease(int shard);
  LeaseWrite lease_write(const std::string& holder, Duration duration) const;
  std::string path(const std::string& name = "") const;
  // The options of a request that must end within our tenure.
  kube::CallOptions within_time() const;
  void set_version(const JsonView& member);
  void tell(const char* what, const Error& error);
  void tell_of_foreign(int shard);

  Loop& loop_;
  kube::Client& client_;
  Random& random_;
  Log log_;
  const Config config_;
  Handlers handlers_;
  cache::Informer leases_;
  const cache::View<CachedLease> cached_;

  State state_ = State::kStarting;
  std::string self_;  // "<id>-<random>": new for each member Lease
  std::string uid_;   // our member Lease's; empty: none
  std::uint64_t version_ = 0;
  SteadyTime renewed_at_{};  // when the last acknowledged renewal was sent
  // The API server's Retry-After, for our member Lease and for shards' Leases.
  SteadyTime not_before_{};
  SteadyTime shards_not_before_{};
  std::string aside_;  // why we step aside, in the last acknowledged renewal
  SteadyTime reading_since_{};
  std::uint64_t tenure_ = 0;  // rises with each lapse; earlier answers no longer count
  bool has_joined_ = false;
  bool takes_no_more_ = false;
  bool beating_ = false;
  bool evaluating_ = false;
  std::string last_trouble_;

  std::vector<Shard> shards_;
  reconciler::LiveClock clock_;
  reconciler::RecordTracker tracker_;
  std::set<int> wanted_;            // as last told
  std::set<std::string> deleting_;  // dead members' Leases that are being deleted

  TimerId tick_timer_ = 0;
  TimerId lapse_timer_ = 0;
  std::function<void()> left_;
};

}  // namespace holdfast::controller
