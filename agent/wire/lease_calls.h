// The requests about an agent's Leases, one at a time over one connection. Loop only.
//
//   LeaseCalls calls(io, server, [this] { ... });  // checks the deadlines
//   calls.send(lease.path(), std::nullopt,         // a GET; with a body, a PUT
//              [&](int status, std::string_view body) { return lease.read(status, body); },
//              [&](const LeaseReading& reading) { ... });
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/asio/io_context.hpp>

#include "agent/wire/api_client.h"
#include "agent/wire/lease_answer.h"

namespace holdfast::agent {

class LeaseCalls {
 public:
  // The deadlines are checked even before an answer is read: they may give the request up.
  LeaseCalls(boost::asio::io_context& io, ApiServer server, std::function<void()> check_deadlines)
      : api_(io, std::move(server)), check_deadlines_(std::move(check_deadlines)) {}

  // `read` returns a variant with LeaseRefusal, and `then` gets it. Without an answer, `read` is not
  // called.
  template <class Read, class Then>
  void send(const std::string& path, std::optional<std::string> body, Read read, Then then) {
    const std::string method = body ? "PUT" : "GET";
    api_.send(method, path, std::move(body).value_or(""),
              [this, number = ++number_, read, then](const ApiReply& reply) {
                check_deadlines_();
                if (number != number_) return;
                std::invoke_result_t<Read, int, std::string_view> reading =
                    LeaseRefusal{.why = reply.why};
                if (reply.status != 0) reading = read(reply.status, reply.body);
                if (auto* const refusal = std::get_if<LeaseRefusal>(&reading)) {
                  refusal->retry_after = reply.retry_after;
                  // This answer does not belong to the request, and the next one on this connection
                  // may not either.
                  if (reply.status == 200) api_.abort();
                }
                then(reading);
              });
  }
  // The answer to the request in progress does not count any more.
  void abort() {
    ++number_;
    api_.abort();
  }

 private:
  ApiClient api_;
  const std::function<void()> check_deadlines_;
  std::uint64_t number_ = 0;  // of the last request
};

}  // namespace holdfast::agent
