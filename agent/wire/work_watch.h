// Watches the work Lease over a connection of its own. A watch that ends is opened again, after a
// pause that grows. It begins with the first version that somebody has read.
//
// A watch may hang without a sign. The agent also reads the Lease itself. If that shows what the
// watch has not, seen() opens another one. Loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/wire/api_client.h"
#include "agent/wire/pool_leases.h"
#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

class WorkWatch {
 public:
  using Handler = std::function<void(const WorkReading&)>;

  WorkWatch(boost::asio::io_context& io, ApiServer server, const WorkLease& lease, Random& random,
            Handler handler);

  // The Lease was read elsewhere.
  void seen(SteadyTime now, const WorkReading& reading);
  // Opens the watch if it is due. Returns when to call it again.
  SteadyTime tick(SteadyTime now);
  void stop();

 private:
  void open(SteadyTime now);
  void take(const WorkView& view);
  void line_has_come(std::string_view line);
  void ended(const ApiReply& reply);
  void again(SteadyTime now);

  // Constant after construction.
  const WorkLease& lease_;
  Random& random_;
  const Handler handler_;

  ApiClient api_;
  bool begun_ = false;
  bool open_ = false;
  std::string version_;  // of the last event; empty: the Lease must be read first
  std::int64_t seq_ = -1;
  Duration pause_{};  // before the next opening
  SteadyTime open_at_{};
  SteadyTime opened_{};
};

}  // namespace holdfast::agent
