// This replica's place among the others: its member Lease, and the shards that it holds.
//
//   join    the installation's number of shards is checked (or put on record), a member Lease with
//   a
//           name of its own is created
//   renew   every retry period, by compare-and-swap. A renewal's age counts from when the last one
//           that was acknowledged was SENT; past the renew deadline nothing is held any more
//   lapse   that, or our member Lease is gone: everything held is dropped at once. Work begins
//   again
//           when a renewal has succeeded, the world was read anew, and each shard was taken again
//   take    only by an acknowledged compare-and-swap on the shard's Lease; from a dead member after
//           its member Lease did not change for its duration by our own steady clock, which runs
//           only while the watch is live and our renewals succeed, and after a live read of it
//   aside   a member that cannot see what it needs says so on its member Lease: it is planned no
//           shards, and gives up those that name it, as long as any other member can see
//   record  what a holder has seen of silent subjects rides on each write of its shard's Lease, and
//           on one each 10 s while there are such subjects: the next owner goes on from there
//   wait    no Lease is asked for before the API server's Retry-After has passed. A renewal is no
//           exception: the claim may lapse of it, which is safe, and the others take over. A server
//           that cannot serve has asked for fewer requests, and one more of each replica would get
//           the same answer. While a shard's Lease cannot be written, its jobs are worked on
//   leave   the member Lease is deleted once no work is in hand: its shards are free by that
//
// What to do about each shard is decided by reconciler::decide_shards(). Loop only; destroy it when
// the client is idle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "core/task.h"
#include "operator/membership/lease_codec.h"
#include "operator/membership/ownership.h"
#include "reconciler/shards.h"
#include "reconciler/staleness.h"

namespace holdfast::controller {

// For /debug/ownership and metrics: who owns what, and why.
struct OwnershipReport {
  struct Member {
    std::string name;
    bool alive = false;
    std::string steps_aside;  // why; empty: it does not
    Duration silent{0};       // since its Lease was seen to change, as far as that time counts
  };
  struct Shard {
    std::string holder;
    std::string planned;
    bool held = false;
    std::string why;
  };
  std::string self;
  std::string state;  // "joining", "acting", "reading", "lapsed", "leaving"
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
    // The shard is ours from here on; nothing that was known of its jobs counts.
    std::function<void(int shard)> gained;
    // It was about to be handed over and stays ours: what came due meanwhile was turned away.
    std::function<void(int shard)> kept;
    // It is not ours any more; `why` is a short word for a metric.
    std::function<void(int shard, const char* why)> lost;
    // It is to be handed over once its work in hand has ended. May be null.
    std::function<void(int shard)> draining = nullptr;
    // Reconciles of its jobs are in flight. Tell work_ended() when they are not.
    std::function<bool(int shard)> busy;
    // Read the world anew, consistently, and then call `done`.
    std::function<void(std::function<void()> done)> refresh;
    // What has not been seen for this long, for people; empty: everything is. May be null.
    std::function<std::string(Duration patience)> unseen = nullptr;
    // A renewal of ours succeeded: the API server and its storage answer.
    std::function<void()> proof;
    // It cannot go on, ever.
    std::function<void(Error error)> refuse;
    // What is to stand on record of a shard that is being written, and what another member has put
    // there (window_keeper.h). Either may be null.
    std::function<std::string(int shard)> record = nullptr;
    std::function<void(const std::string& windows)> recorded = nullptr;
  };
  Membership(const Dependencies& dependencies, Config config, Handlers handlers);
  ~Membership() override;

  // The caches are the caller's to start and to wait for; join() comes after they are synced.
  cache::Informer& leases() { return leases_; }
  void join();
  // It will leave: nothing new is begun, and no shard is taken; what is in hand may go on.
  void take_no_more() { takes_no_more_ = true; }
  // Call it when no reconcile is in flight any more. `left` runs when the member Lease is deleted,
  // or could not be within the limit.
  void leave(std::function<void()> left);
  void work_ended(int shard);

  int shard_of(const std::string& job_uid) const;
  // The job's shard is held, whether or not it is about to go.
  bool holds(const std::string& job_uid) const;
  bool holds_shard(int shard) const;
  bool is_draining(int shard) const;
  std::optional<Claim> claim(const std::string& job_uid) const override;
  bool holds(const Claim& claim) const override;
  Duration time_left() const override;

  // The API server's data was set back: what our own writes were answered is of the future.
  void time_travelled();

  // It has been a member at least once: before, it may lack a right, or its namespace.
  bool has_joined() const { return has_joined_; }
  OwnershipReport report();
  int shards_held() const;

 private:
  enum class State { kIdle, kJoining, kActing, kReading, kLapsed, kLeaving };
  struct Shard {
    bool held = false;
    bool draining = false;
    bool pending = false;
    std::uint64_t tenure = 0;  // counts how often it was gained
    // What our own last write of its Lease was answered; the cache counts once it is as new.
    std::shared_ptr<const CachedLease> written;
    std::string why;
    std::string planned;
    SteadyTime recorded_at{};  // its windows, when they were last written here
    int unseen = 0;            // creations in a row that met a Lease which the watch does not show
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
  void arm_lapse();
  bool refuse_wrong_number(const CachedLease& lease);
  std::string new_name();
  void update_clock();

  void on_lease(const cache::Change& change);
  bool evaluates() const;
  void evaluate_soon();
  void evaluate();
  reconciler::ShardsView view();
  bool member_alive(const CachedLease& member);
  bool room() const;  // for one more write of a shard's Lease
  bool shards_wait() const;
  void heed_shards(const Result<JsonDocument>& answer);
  void carry_out(int shard, const reconciler::ShardDecision& decision);
  // `before`: the Lease that the decision rested on; null: there was none.
  Task<void> take(int shard, std::shared_ptr<const CachedLease> before);
  Task<void> take_over(int shard);
  Task<bool> holder_is_dead(std::string holder);
  Task<void> release(int shard);
  void keep_records();
  Task<void> write_record(int shard, std::shared_ptr<const CachedLease> before,
                          std::string windows);
  void note_written(Shard& ours, const JsonView& answer);
  std::string windows_of(int shard) const;
  void drop(int shard, const char* why);
  void tidy();
  Task<void> delete_member(std::string name, std::string uid, std::uint64_t version);
  Task<void> say_goodbye();

  std::shared_ptr<const CachedLease> shard_lease(int shard);
  LeaseWrite lease_write(const std::string& holder, Duration duration) const;
  std::string path(const std::string& name = "") const;
  // Of a request on behalf of our tenure.
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

  State state_ = State::kIdle;
  std::string self_;  // "<id>-<random>": another one for each member Lease
  std::string uid_;   // of our member Lease; empty: there is none
  std::uint64_t version_ = 0;
  SteadyTime renewed_at_{};  // when the last acknowledged renewal was sent
  // The API server's Retry-After: our member Lease is not asked for before, shards' are not before.
  SteadyTime not_before_{};
  SteadyTime shards_not_before_{};
  std::string aside_;  // why we step aside, as the last acknowledged renewal says
  SteadyTime reading_since_{};
  std::uint64_t tenure_ = 0;  // counts up at each lapse: an answer from before does not count
  bool has_joined_ = false;
  bool takes_no_more_ = false;
  bool beating_ = false;
  bool evaluating_ = false;
  std::string last_trouble_;

  std::vector<Shard> shards_;
  reconciler::LiveClock clock_;
  reconciler::RecordTracker tracker_;
  std::set<std::string> deleting_;  // member Leases that are being tidied away

  TimerId tick_timer_ = 0;
  TimerId lapse_timer_ = 0;
  std::function<void()> left_;
};

}  // namespace holdfast::controller
