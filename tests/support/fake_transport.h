// A Transport whose server is the test: it sees the requests and answers at any time.
//
//   FakeTransport transport(loop);
//   ... code under test sends ...
//   loop.run_ready();
//   ASSERT_EQ(transport.request().target, "/api/v1/pods");
//   transport.answer(200, R"({"items": []})");
//   loop.run_ready();
//
// Answers are delivered by loop.post(), as the real transport does; `decode` functions run at once.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "client/http/transport.h"
#include "core/loop.h"

namespace holdfast::test {

class FakeTransport : public http::Transport {
 public:
  explicit FakeTransport(Loop& loop) : loop_(loop) {}

  http::CallId send(http::Request request, http::ResponseHandler handler) override;
  http::CallId open(http::StreamRequest request, http::StreamHandlers handlers) override;
  void cancel(http::CallId call) override;

  struct PendingRequest {
    http::CallId id;
    http::Request request;
    http::ResponseHandler handler;
    SteadyTime sent;
  };
  struct Stream {
    http::CallId id;
    http::StreamRequest request;
    http::StreamHandlers handlers;
    SteadyTime sent;
  };

  // The requests without an answer, oldest first. The functions below use the oldest.
  std::size_t pending() const { return pending_.size(); }
  const http::Request& request(std::size_t index = 0) const { return pending_.at(index).request; }
  void answer(int status, std::string body = "", http::Headers headers = {}) {
    answer_at(0, status, std::move(body), std::move(headers));
  }
  void answer_at(std::size_t index, int status, std::string body = "", http::Headers headers = {});
  void fail(Error error);
  // Fails like a refused connection, or like a connection that breaks before the answer.
  void refuse() { fail(lost("connection refused", false)); }
  void lose() { fail(lost("connection reset", true)); }

  // The open streams, oldest first.
  std::size_t streams() const { return streams_.size(); }
  const http::StreamRequest& stream(std::size_t index = 0) const {
    return streams_.at(index).request;
  }
  // Any status but 200 also ends the stream.
  void open_stream(std::size_t index = 0, int status = 200, std::string body = "",
                   http::Headers headers = {});
  void stream_lines(const std::vector<std::string>& lines, std::size_t index = 0);
  void end_stream(std::size_t index = 0, std::optional<Error> error = std::nullopt);

  // The `Date` header of answers; none: no such header.
  std::optional<Time> date;

  // All requests in order, for assertions.
  struct Sent {
    std::string method;
    std::string target;
    http::Headers headers;
    std::string body;
    http::Urgency urgency = http::Urgency::kOrdinary;
  };
  std::vector<Sent> history;

  static Error lost(const std::string& message, bool maybe_applied);

 private:
  http::Response response(int status, std::string body, const http::Headers& headers,
                          SteadyTime sent) const;

  Loop& loop_;
  http::CallId next_id_ = 1;
  std::deque<PendingRequest> pending_;
  std::deque<Stream> streams_;
};

// The header's value; empty if absent.
std::string header(const http::Headers& headers, const std::string& name);

}  // namespace holdfast::test
