// GETs of jobs, a few at a time, each over its own connection. Others wait in a queue. Loop only.
//
//   std::uint64_t look = looks.get("/apis/...", [](ApiReply reply) { ... });
//   looks.cancel(look);   // its handler is not called any more
//
// Looks at the same job share a GET that has not been sent yet: many runs of one job begin at once.
// So each answer is newer than its call of get(). The caller sets time limits with cancel().
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>

#include <boost/asio/io_context.hpp>

#include "agent/wire/api_client.h"

namespace holdfast::agent {

class JobLooks {
 public:
  JobLooks(boost::asio::io_context& io, const ApiServer& server, int slots);

  std::uint64_t get(const std::string& path, ApiClient::Handler handler);
  void cancel(std::uint64_t look);  // 0: none

 private:
  struct Look {
    std::uint64_t number = 0;
    ApiClient::Handler handler;
  };
  using Looks = std::deque<Look>;
  struct Client {
    Client(boost::asio::io_context& io, const ApiServer& server) : api(io, server) {}
    ApiClient api;
    bool is_busy = false;
    Looks looks;  // that its request answers
  };
  struct Waiting {
    std::string path;
    Looks looks;  // never empty
  };

  void go_on_soon();
  void go_on();
  void answered(Client& client, const ApiReply& reply);

  boost::asio::io_context& io_;
  std::list<Client> clients_;
  std::deque<Waiting> waiting_;  // as many as there are slots at most
  std::uint64_t looks_ = 0;
  bool goes_on_ = false;  // go_on() comes in a later turn of the loop
};

}  // namespace holdfast::agent
