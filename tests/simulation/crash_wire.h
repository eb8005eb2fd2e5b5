// A transport between a replica and the network. It counts the requests and does the mishap to the
// point's request. It passes everything else on unchanged.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/http/transport.h"
#include "core/loop.h"
#include "tests/simulation/crash_point.h"

namespace holdfast::simulation {

// The replica, and the callbacks.
class WireTap {
 public:
  virtual ~WireTap() = default;
  // A request is about to leave. Returns its mishap, if it is the point's request.
  virtual std::optional<Mishap> leaves(int replica, const std::string& method,
                                       const std::string& target) = 0;
  // The next request that the network gets is the point's.
  virtual void goes_out(int replica, Mishap mishap, const std::string& target) = 0;
  // The replica dies now.
  virtual void dies(int replica) = 0;
  // The replica has its answer: the mishap is over.
  virtual void is_over() = 0;
};

class TappedWire : public http::Transport {
 public:
  TappedWire(WireTap& tap, int replica, Loop& loop, http::Transport& network)
      : tap_(tap), replica_(replica), loop_(loop), network_(network) {}

  http::CallId send(http::Request request, http::ResponseHandler handler) override;
  http::CallId open(http::StreamRequest request, http::StreamHandlers handlers) override;
  void cancel(http::CallId call) override;

 private:
  // The error that a kept call answers with.
  using Answer = std::function<void(Error)>;

  http::CallId keep(Answer answer);
  // Keeps a call until the replica learns of the loss: soon, or at the timeout.
  http::CallId lose(Answer answer, bool silently, Duration limit);
  void report_loss(http::CallId call, const char* why);
  void die();

  WireTap& tap_;
  const int replica_;
  Loop& loop_;
  http::Transport& network_;
  bool dying_ = false;  // nothing passes any more
  http::CallId next_kept_ = 0;
  std::map<http::CallId, Answer> kept_;
  std::map<http::CallId, http::CallId> carried_;  // a kept call's id in the network
};

}  // namespace holdfast::simulation
