#include "agent/job_looks.h"

#include <algorithm>
#include <utility>

namespace holdfast::agent {
namespace {

// Each has a connection that stays open. A look takes some milliseconds.
constexpr int kMostClients = 4;

}  // namespace

JobLooks::JobLooks(boost::asio::io_context& io, const ApiServer& server, int slots) {
  for (int i = 0; i < std::min(slots, kMostClients); ++i) clients_.emplace_back(io, server);
}

std::uint64_t JobLooks::get(const std::string& path, ApiClient::Handler handler) {
  const std::uint64_t look = ++looks_;
  waiting_.push_back({look, path, std::move(handler)});
  go_on();
  return look;
}

void JobLooks::cancel(std::uint64_t look) {
  if (look == 0) return;
  std::erase_if(waiting_, [&](const Waiting& one) { return one.look == look; });
  for (Client& client : clients_) {
    if (client.look != look) continue;
    client.look = 0;
    client.api.abort();
  }
  go_on();
}

void JobLooks::go_on() {
  for (Client& client : clients_) {
    if (waiting_.empty()) return;
    if (client.look != 0) continue;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    client.look = next.look;
    client.api.send("GET", next.path, "",
                    [this, &client, handler = std::move(next.handler)](ApiReply reply) {
                      client.look = 0;
                      handler(std::move(reply));
                      go_on();
                    });
  }
}

}  // namespace holdfast::agent
