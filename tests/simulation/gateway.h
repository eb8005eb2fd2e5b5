// The simulated API server's front door: what happens to a request once it has arrived. It may be
// down, its etcd may hang, its watch cache may lag; else ApiServer answers at once.
//
// Kubelets and users ask through it too, over a network of their own that never fails.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

// One request of a simulated process on its way.
struct Delivery {
  ApiRequest request;
  int replica = -1;          // -1: no replica's
  std::uint64_t life = 0;    // of the replica: one more for each start
  std::uint64_t number = 0;  // of all requests of replicas
  Duration sent{0};
  bool twice = false;  // it is delivered two times; `copy` tells which this is
  int copy = 0;
  // Whoever sent it still waits for its answer. Null: nobody would notice.
  std::function<bool()> awaited = nullptr;
};

class Gateway {
 public:
  Gateway(Scheduler& scheduler, ApiServer& server, std::uint64_t seed);

  ApiServer& server() { return server_; }
  // The server's wall clock.
  static Time beginning();
  Time wall_clock() const;
  void step_wall_clock(Duration by) { stepped_ += by; }

  // No answer: the connection broke, or the server is not there.
  using Reply = std::function<void(std::optional<ApiAnswer>)>;
  // `reply` runs at once or, when etcd hangs or the cache lags, later.
  void arrive(Delivery delivery, Reply reply);

  struct Opened {
    ApiAnswer answer;
    WatchId id = 0;
  };
  using OpenReply = std::function<void(std::optional<Opened>)>;
  void open(Delivery delivery, WatchSink sink, OpenReply reply);

  // For kubelets and users: none: not now.
  std::optional<ApiAnswer> ask(const std::string& user, const std::string& method,
                               const std::string& target, const Json& body = nullptr,
                               const std::string& content_type = "application/json");

  // Told before a request is handled, and after.
  std::function<void(const Delivery&)> before_request;
  std::function<void(const Delivery&, const ApiAnswer&)> after_request;
  // What befalls single requests and watches before the server looks at them: webhooks, flow
  // control, storage that fails for one namespace. A request that is held is dropped if its sender
  // gives it up meanwhile, as an API server does that sees the connection close.
  struct Fate {
    Duration held{0};
    int refused = 0;  // the status; 0: it passes
    int retry_after_seconds = 0;
    Duration answer_held{0};  // what was asked for is done by then
  };
  std::function<Fate(const ApiRequest&)> fate_of;
  // Pods cannot be created: quota.
  void quota(bool on) { quota_ = on; }
  std::function<void()> on_quota;  // it has refused one
  // A webhook makes each pod invalid on its way.
  void broken_pods(bool on);
  Duration pods_broken_for() const;

  bool up() const { return up_; }
  void go_down();
  void come_up();
  bool stalled() const { return stalled_; }
  void stall();
  void unstall();
  // When nobody could write for so long that all windows must start anew: the last such time's end.
  Duration last_trouble_end() const { return last_trouble_end_; }
  bool in_trouble() const { return !up_ || stalled_; }
  // The watch cache is brought up to the truth this much later than usual.
  void lag(Duration by) { lag_ = by; }
  // The world calls it after each write.
  void changed();
  // Watches that the server ends meanwhile are cut off rather than ended.
  bool cutting_off() const { return cutting_off_; }
  void restart(bool cut_off);

 private:
  ApiAnswer handle(const Delivery& delivery);
  void pass(Delivery delivery, Reply reply);
  void pass(Delivery delivery, WatchSink sink, OpenReply reply);
  void after(const Fate& fate, std::function<void()> what);
  void trouble_begins();
  void trouble_ends();
  void hold(Delivery delivery, Reply reply);
  void advance();

  Scheduler& scheduler_;
  ApiServer& server_;
  SeededRandom random_;
  bool up_ = true;
  bool stalled_ = false;
  bool quota_ = false;
  std::optional<Duration> pods_broken_since_;
  bool cutting_off_ = false;
  std::uint64_t incarnation_ = 0;  // one more for each outage
  Duration lag_{0};
  Duration stepped_{0};
  Duration trouble_began_{0};
  Duration last_trouble_end_{0};
  bool advance_pending_ = false;
  std::vector<std::function<void(bool late)>> held_;
};

// What a query says; empty: nothing.
std::string query_value(const std::string& target, const std::string& name);
bool is_watch(const std::string& target);
// A metav1.Status.
ApiAnswer refusal(int status, const std::string& reason, const std::string& message,
                  int retry_after_seconds = 0);

}  // namespace holdfast::simulation
