// Stands in a replica's wire, counts its requests, and does the one mishap to the one that is the
// point. All else goes through untouched.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/http/transport.h"
#include "core/loop.h"
#include "tests/simulation/crash_point.h"

namespace holdfast::simulation {

// Whose wire it is, and whom it tells.
class WireTap {
 public:
  virtual ~WireTap() = default;
  // A request is about to leave; what befalls it, if it is the point.
  virtual std::optional<Mishap> leaves(int replica, const std::string& method,
                                       const std::string& target) = 0;
  // The next thing that the network is given is the point's request.
  virtual void goes_out(int replica, Mishap mishap, const std::string& target) = 0;
  // The replica dies now.
  virtual void dies(int replica) = 0;
  // The replica was told what there is to tell: all is well again.
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
  // How a call that this wire keeps to itself answers: with this error.
  using Answer = std::function<void(Error)>;

  http::CallId keep(Answer answer);
  // Kept until it is lost for the replica: soon, or when its time is out.
  http::CallId lose(Answer answer, bool silently, Duration limit);
  void tell(http::CallId call, const char* why);
  void die();

  WireTap& tap_;
  const int replica_;
  Loop& loop_;
  http::Transport& network_;
  bool dying_ = false;  // nothing leaves it any more
  http::CallId next_kept_ = 0;
  std::map<http::CallId, Answer> kept_;
  std::map<http::CallId, http::CallId> carried_;  // of a kept call: the network's
};

}  // namespace holdfast::simulation
