#include "tests/support/fake_transport.h"

#include <algorithm>
#include <utility>

#include "tests/support/decode_body.h"

namespace holdfast::test {

using http::CallId;
using http::Headers;
using http::Response;

std::string header(const Headers& headers, const std::string& name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

Error FakeTransport::lost(const std::string& message, bool maybe_applied) {
  Error error = make_error(ErrorCode::kTransient, message);
  error.maybe_applied = maybe_applied;
  return error;
}

CallId FakeTransport::send(http::Request request, http::ResponseHandler handler) {
  history.push_back(
      {request.method, request.target, request.headers, request.body, request.urgency});
  pending_.push_back({next_id_, std::move(request), std::move(handler), loop_.now()});
  return next_id_++;
}

CallId FakeTransport::open(http::StreamRequest request, http::StreamHandlers handlers) {
  history.push_back({"GET", request.target, request.headers, ""});
  streams_.push_back({next_id_, std::move(request), std::move(handlers), loop_.now()});
  return next_id_++;
}

void FakeTransport::cancel(CallId call) {
  const auto is_call = [call](const auto& entry) { return entry.id == call; };
  const auto cancelled = make_error(ErrorCode::kCancelled, "cancelled");
  const auto request = std::find_if(pending_.begin(), pending_.end(), is_call);
  if (request != pending_.end()) {
    loop_.post([handler = std::move(request->handler), cancelled] { handler(cancelled); });
    pending_.erase(request);
  }
  const auto stream = std::find_if(streams_.begin(), streams_.end(), is_call);
  if (stream != streams_.end()) {
    end_stream(static_cast<std::size_t>(stream - streams_.begin()), cancelled);
  }
}

Response FakeTransport::response(int status, std::string body, const Headers& headers,
                                 SteadyTime sent) const {
  Response response;
  response.status = status;
  response.body = std::move(body);
  response.date = date;
  response.sent = sent;
  response.received = loop_.now();
  const std::string retry_after = header(headers, "Retry-After");
  if (!retry_after.empty()) response.retry_after = std::chrono::seconds(std::stoi(retry_after));
  return response;
}

void FakeTransport::answer_at(std::size_t index, int status, std::string body, Headers headers) {
  PendingRequest pending = std::move(pending_.at(index));
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  Response answer = response(status, std::move(body), headers, pending.sent);
  decode_body(pending.request, answer);
  loop_.post([handler = std::move(pending.handler), answer] { handler(answer); });
}

void FakeTransport::fail(Error error) {
  PendingRequest pending = std::move(pending_.front());
  pending_.pop_front();
  loop_.post([handler = std::move(pending.handler), error] { handler(error); });
}

void FakeTransport::open_stream(std::size_t index, int status, std::string body, Headers headers) {
  const Stream& stream = streams_.at(index);
  loop_.post([on_open = stream.handlers.on_open,
              head = response(status, std::move(body), headers, stream.sent)] { on_open(head); });
  if (status != 200) end_stream(index);
}

void FakeTransport::stream_lines(const std::vector<std::string>& lines, std::size_t index) {
  const Stream& stream = streams_.at(index);
  std::vector<std::any> decoded;
  for (const std::string& line : lines) decoded.push_back(stream.request.decode(line));
  loop_.post([on_lines = stream.handlers.on_lines, decoded] {
    std::vector<std::any> copy = decoded;
    on_lines(std::move(copy));
  });
}

void FakeTransport::end_stream(std::size_t index, std::optional<Error> error) {
  loop_.post([on_end = streams_.at(index).handlers.on_end, error] { on_end(error); });
  streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace holdfast::test
