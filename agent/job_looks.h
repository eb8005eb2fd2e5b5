// GETs of jobs, a few at a time, each over its own connection. Others wait in a queue. Loop only.
//
//   std::uint64_t look = looks.get("/apis/...", [](ApiReply reply) { ... });
//   looks.cancel(look);   // its handler is not called any more
//
// The caller sets time limits with cancel().
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <string>

#include <boost/asio/io_context.hpp>

#include "agent/api_client.h"

namespace holdfast::agent {

class JobLooks {
 public:
  JobLooks(boost::asio::io_context& io, const ApiServer& server, int slots);

  std::uint64_t get(const std::string& path, ApiClient::Handler handler);
  void cancel(std::uint64_t look);  // 0: none

 private:
  struct Client {
    Client(boost::asio::io_context& io, const ApiServer& server) : api(io, server) {}
    ApiClient api;
    std::uint64_t look = 0;  // in progress; 0: none
  };
  struct Waiting {
    std::uint64_t look = 0;
    std::string path;
    ApiClient::Handler handler;
  };

  void go_on();

  std::list<Client> clients_;
  std::deque<Waiting> waiting_;  // as many as there are slots at most
  std::uint64_t looks_ = 0;
};

}  // namespace holdfast::agent
