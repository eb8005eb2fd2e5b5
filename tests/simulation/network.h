// The network between the operator's replicas and the API server. Each process has a Transport, and
// its link loses, delays and repeats requests and answers.
//
// It keeps the contract of client/http/transport.h. Handlers run in later turns of the process's
// loop. Each request answers once, and each stream ends once.
#pragma once

#include <any>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/http/transport.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class SimTransport;

class Network {
 public:
  enum class Cut { kNone, kSilent, kRefused };

  Network(Scheduler& scheduler, Gateway& gateway, Strikes& strikes, std::uint64_t seed);

  void cut(int replica, Cut cut) { cuts_[replica] = cut; }
  Cut cut_of(int replica) const;

  // Breaks the open watches of a replica (-1: of all). Returns how many.
  int break_watches(int replica);
  // Makes the client notice its silent watches.
  void break_silent_watches();
  // Makes watches silent: no further line, and no end.
  int silence_watches(int replica);
  // How many silent watches are still open after this time or longer, in processes that were not
  // paused meanwhile (L7).
  std::vector<std::string> silent_for_too_long() const;

  // Requests of a replica that get 503: its API server is ill.
  std::function<bool(const Delivery&)> refuses;

  // Every third answer comes from an API server whose clock is this much slower.
  Duration slower_server{0};

  // A replica sees the versions of a resource this much higher than the server's: each resource has
  // an etcd of its own. Null: all have the same.
  std::function<std::int64_t(const std::string& target)> versions_from;

  // Called when a process sends a request, and when the answer reaches the process.
  std::function<void(const Delivery&)> on_send;
  std::function<void(const Delivery&, const ApiAnswer&)> on_answer;
  std::uint64_t requests() const { return requests_; }

 private:
  friend class SimTransport;
  Duration latency() {
    return Duration(200'000 + static_cast<std::int64_t>(random_.below(1'800'000)));
  }

  Scheduler& scheduler_;
  Gateway& gateway_;
  Strikes& strikes_;
  SeededRandom random_;
  std::map<int, Cut> cuts_;
  std::vector<SimTransport*> transports_;
  std::uint64_t requests_ = 0;
};

class SimTransport : public http::Transport {
 public:
  SimTransport(Network& network, SimLoop& loop, int replica, std::uint64_t life);
  ~SimTransport() override;

  http::CallId send(http::Request request, http::ResponseHandler handler) override;
  http::CallId open(http::StreamRequest request, http::StreamHandlers handlers) override;
  void cancel(http::CallId call) override;

  // The process dies. Requests that it has sent may still arrive; nothing else reaches the world.
  // Every call answers kCancelled.
  void die();
  std::size_t open_calls() const { return calls_.size() + streams_.size(); }

 private:
  friend class Network;
  struct Call;
  struct Stream;
  using CallPtr = std::shared_ptr<Call>;
  using StreamPtr = std::shared_ptr<Stream>;

  void transmit(const CallPtr& call, Duration delay, int copy);
  void answered(const CallPtr& call, const Delivery& delivery, std::optional<ApiAnswer> answer);
  void deliver(const CallPtr& call, const Delivery& delivery, const ApiAnswer& answer);
  void fail(const CallPtr& call, const char* why, bool maybe_applied);
  void finish(const CallPtr& call, Result<http::Response> result);
  http::Response response(const ApiAnswer& answer, SteadyTime sent);

  void arrive(const StreamPtr& stream);
  void opened(const StreamPtr& stream, std::optional<Gateway::Opened> opened);
  void push(const StreamPtr& stream, std::function<void()> piece, std::string line);
  void flush(const StreamPtr& stream);
  void end(const StreamPtr& stream, std::optional<Error> error);
  void arm_idle(const StreamPtr& stream, Duration limit);

  Network& network_;
  SimLoop& loop_;
  const int replica_;
  const std::uint64_t life_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool dead_ = false;
  http::CallId next_id_ = 1;
  std::uint64_t answers_ = 0;
  std::map<http::CallId, CallPtr> calls_;
  std::map<http::CallId, StreamPtr> streams_;
};

}  // namespace holdfast::simulation
