#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {

StreamHandlers StreamLog::handlers() {
  StreamHandlers handlers;
  handlers.on_open = [this](const Response& response) {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = response.status;
    body_ = response.body;
  };
  handlers.on_lines = [this](std::vector<std::any>&& lines) {
    if (on_batch) on_batch();
    std::lock_guard<std::mutex> lock(mutex_);
    for (std::any& line : lines) lines_.push_back(std::any_cast<std::string&&>(std::move(line)));
  };
  handlers.on_end = [this](std::optional<Error> error) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++ends_;
    EXPECT_EQ(ends_, 1);
    error_ = std::move(error);
  };
  return handlers;
}

int StreamLog::opened_status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}
std::string StreamLog::opened_body() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return body_;
}
std::vector<std::string> StreamLog::lines() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lines_;
}
std::size_t StreamLog::line_count() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lines_.size();
}
bool StreamLog::ended() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return ends_ > 0;
}
std::optional<Error> StreamLog::error() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

TransportTest::TransportTest() { make(config()); }
TransportTest::~TransportTest() { destroy(); }

CpprestTransport::Config TransportTest::config() const {
  CpprestTransport::Config config;
  config.base_url = server_.url();
  config.tls.ca = ca_.certificate();
  return config;
}

void TransportTest::make(const CpprestTransport::Config& config) {
  destroy();
  loop_.run([&] {
    auto made = CpprestTransport::create(loop_.loop(), config, Log());
    ASSERT_TRUE(made.ok()) << made.error().message;
    transport_ = std::move(made).value();
  });
}

void TransportTest::destroy() {
  loop_.run([this] { transport_.reset(); });
  loop_.run([] {});  // what that cancelled has been answered
}

std::future<Result<Response>> TransportTest::begin(Request request, CallId* id) {
  auto answer = std::make_shared<std::promise<Result<Response>>>();
  auto future = answer->get_future();
  const CallId call = loop_.run([&] {
    return transport_->send(std::move(request), [answer](Result<Response> result) {
      answer->set_value(std::move(result));  // throws if it is called twice
    });
  });
  if (id != nullptr) *id = call;
  return future;
}

Result<Response> TransportTest::get(std::future<Result<Response>>& answer) {
  if (answer.wait_for(kPatience) != std::future_status::ready) {
    return make_error(ErrorCode::kTerminal, "the transport never answered");
  }
  return answer.get();
}

Result<Response> TransportTest::send(Request request) {
  auto answer = begin(std::move(request));
  return get(answer);
}

CallId TransportTest::open(StreamRequest request, StreamLog& log) {
  return loop_.run([&] { return transport_->open(std::move(request), log.handlers()); });
}

void TransportTest::cancel(CallId call) {
  loop_.run([&] { transport_->cancel(call); });
}

std::size_t TransportTest::unfinished() {
  return loop_.run([this] { return transport_->unfinished(); });
}

Request TransportTest::get_request(const std::string& target) {
  Request request;
  request.target = target;
  return request;
}

}  // namespace holdfast::http
