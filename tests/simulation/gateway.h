// The simulated API server's front door: handles a request once it has arrived. The server may be
// down, its etcd may hang, its watch cache may lag. Otherwise ApiServer answers at once.
//
// Kubelets and users use it too, over a network of their own that never fails.
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
  int replica = -1;          // -1: not from a replica
  std::uint64_t life = 0;    // the replica's, one more for each start
  std::uint64_t number = 0;  // counts all requests of replicas
  Duration sent{0};
  bool twice = false;  // delivered twice; `copy` says which this is
  int copy = 0;
  // True while the sender still waits for the answer. Null: always.
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

  // No answer: the connection broke, or the server is down.
  using Reply = std::function<void(std::optional<ApiAnswer>)>;
  // `reply` runs at once, or later if etcd hangs or the cache lags.
  void arrive(Delivery delivery, Reply reply);

  struct Opened {
    ApiAnswer answer;
    WatchId id = 0;
  };
  using OpenReply = std::function<void(std::optional<Opened>)>;
  void open(Delivery delivery, WatchSink sink, OpenReply reply);

  // For kubelets and users. None: not now.
  std::optional<ApiAnswer> ask(const std::string& user, const std::string& method,
                               const std::string& target, const Json& body = nullptr,
                               const std::string& content_type = "application/json");

  // Called before and after a request is handled.
  std::function<void(const Delivery&)> before_request;
  std::function<void(const Delivery&, const ApiAnswer&)> after_request;
  // Faults of single requests and watches before the server handles them: webhooks, flow control,
  // storage that fails for one namespace. A held request is dropped if its sender gives up
  // meanwhile, as an API server does when the connection closes.
  struct Fate {
    Duration held{0};
    int refused = 0;  // the status; 0: it passes
    int retry_after_seconds = 0;
    Duration answer_held{0};  // delays the answer; the request itself is done
    bool on_the_way = false;  // it is held before the server has it: also one that was given up
  };
  std::function<Fate(const ApiRequest&)> fate_of;
  // A quota refuses new pods.
  void quota(bool on) { quota_ = on; }
  std::function<void()> on_quota;  // the quota has refused a pod
  // A webhook makes each pod invalid.
  void broken_pods(bool on);
  Duration pods_broken_for() const;  // short pauses included

  bool up() const { return up_; }
  void go_down();
  void come_up();
  bool stalled() const { return stalled_; }
  void stall();
  void unstall();
  // The end of the last time in which nobody could write for so long that all windows must start
  // again.
  Duration last_trouble_end() const { return last_trouble_end_; }
  bool in_trouble() const { return !up_ || stalled_; }
  // Delays the watch cache by this much more than usual.
  void lag(Duration by) { lag_ = by; }
  // The world calls this after each write.
  void changed();
  // While set, watches that the server ends are cut off instead.
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
  bool pods_broken_ = false;
  Duration pods_broken_since_{0};
  std::optional<Duration> pods_mended_at_;
  bool cutting_off_ = false;
  std::uint64_t incarnation_ = 0;  // one more for each outage
  Duration lag_{0};
  Duration stepped_{0};
  Duration trouble_began_{0};
  Duration last_trouble_end_{0};
  bool advance_pending_ = false;
  std::vector<std::function<void(bool late)>> held_;
};

// A query parameter's value; empty: absent.
std::string query_value(const std::string& target, const std::string& name);
bool is_watch(const std::string& target);
// A metav1.Status.
ApiAnswer refusal(int status, const std::string& reason, const std::string& message,
                  int retry_after_seconds = 0);

}  // namespace holdfast::simulation
