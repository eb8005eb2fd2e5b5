#include "agent/wire/job_looks.h"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

namespace holdfast::agent {
namespace {

// Each has a connection that stays open. A look takes some milliseconds.
constexpr int kMostClients = 4;

}  // namespace

JobLooks::JobLooks(boost::asio::io_context& io, const ApiServer& server, int slots) : io_(io) {
  for (int i = 0; i < std::min(slots, kMostClients); ++i) clients_.emplace_back(io, server);
}

std::uint64_t JobLooks::get(const std::string& path, ApiClient::Handler handler) {
  const std::uint64_t number = ++looks_;
  auto same = std::find_if(waiting_.begin(), waiting_.end(),
                           [&](const Waiting& one) { return one.path == path; });
  if (same == waiting_.end()) same = waiting_.insert(waiting_.end(), Waiting{path, {}});
  same->looks.push_back({number, std::move(handler)});
  go_on_soon();
  return number;
}

void JobLooks::cancel(std::uint64_t look) {
  if (look == 0) return;
  const auto is_it = [&](const Look& one) { return one.number == look; };
  for (Waiting& one : waiting_) std::erase_if(one.looks, is_it);
  std::erase_if(waiting_, [](const Waiting& one) { return one.looks.empty(); });
  for (Client& client : clients_) {
    if (std::erase_if(client.looks, is_it) == 0 || !client.looks.empty()) continue;
    if (!std::exchange(client.is_busy, false)) continue;
    client.api.abort();
    go_on_soon();
  }
}

// The other looks of this turn come first, so that they can share.
void JobLooks::go_on_soon() {
  if (std::exchange(goes_on_, true)) return;
  boost::asio::post(io_, [this] { go_on(); });
}

void JobLooks::go_on() {
  goes_on_ = false;
  for (Client& client : clients_) {
    if (waiting_.empty()) return;
    if (client.is_busy) continue;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    client.is_busy = true;
    client.looks = std::move(next.looks);
    client.api.send("GET", next.path, "",
                    [this, &client](const ApiReply& reply) { answered(client, reply); });
  }
}

// A handler may cancel others of these looks.
void JobLooks::answered(Client& client, const ApiReply& reply) {
  client.is_busy = false;
  while (!client.looks.empty()) {
    const Look look = std::move(client.looks.front());
    client.looks.pop_front();
    look.handler(reply);
  }
  go_on_soon();
}

}  // namespace holdfast::agent
