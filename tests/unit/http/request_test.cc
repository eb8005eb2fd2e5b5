#include <atomic>

#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

using namespace std::chrono_literals;

std::string big_text(std::size_t size) {
  std::string text(size, 'x');
  for (std::size_t i = 0; i < size; i += 7) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

class RequestTest : public TransportTest {};

TEST_F(RequestTest, SendsMethodTargetHeadersAndBodyAsTheyStand) {
  Request request;
  request.method = "PUT";
  request.target = "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5";
  request.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer t"}};
  request.body = R"({"a": 1})";
  ASSERT_TRUE(send(std::move(request)).ok());
  const auto seen = server_.requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].method, "PUT");
  EXPECT_EQ(seen[0].target, "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5");
  EXPECT_EQ(seen[0].headers.at("content-type"), "application/json");
  EXPECT_EQ(seen[0].headers.at("authorization"), "Bearer t");
  EXPECT_EQ(seen[0].headers.count("accept-encoding"), 0u);
  EXPECT_EQ(seen[0].body, R"({"a": 1})");
}

TEST_F(RequestTest, ABaseUrlWithAPathIsKept) {
  auto with_path = config();
  with_path.base_url += "/k8s/clusters/one/";
  make(with_path);
  ASSERT_TRUE(send(get_request("/api/v1/pods?limit=1")).ok());
  EXPECT_EQ(server_.requests().at(0).target, "/k8s/clusters/one/api/v1/pods?limit=1");
}

TEST_F(RequestTest, GivesStatusBodyDateAndRetryAfter) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.respond(429, "slow down", "Retry-After: 7\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  });
  const auto response = send(get_request("/"));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->body, "slow down");
  EXPECT_EQ(response->retry_after, Duration(7s));
  EXPECT_EQ(response->date, parse_time("1994-11-06T08:49:37Z"));
  EXPECT_LE(response->sent, response->received);
}

TEST_F(RequestTest, DecodesASuccessOnAnIoThreadAndLeavesFailuresAsText) {
  std::atomic<bool> on_loop{true};
  const auto decoding = [&](const std::string& target) {
    Request request = get_request(target);
    request.decode = [&](std::string&& body) -> std::any {
      on_loop = loop_.loop().on_loop();
      return body.size();
    };
    return request;
  };
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.respond(exchange.request.target == "/good" ? 200 : 404, "12345");
  });
  const auto good = send(decoding("/good"));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(std::any_cast<std::size_t>(good->decoded), 5u);
  EXPECT_TRUE(good->body.empty());
  EXPECT_FALSE(on_loop);
  const auto bad = send(decoding("/bad"));
  ASSERT_TRUE(bad.ok());
  EXPECT_FALSE(bad->decoded.has_value());
  EXPECT_EQ(bad->body, "12345");
}

// Counts what it is given, and how much of it at a time.
class Counting : public BodyReader {
 public:
  Counting(std::size_t* most, bool* on_loop, const Loop& loop)
      : most_(most), on_loop_(on_loop), loop_(loop) {}
  bool read(std::string_view piece) override {
    *most_ = std::max(*most_, piece.size());
    *on_loop_ = loop_.on_loop();
    count_ += piece.size();
    return true;
  }
  std::any finish() override { return count_; }

 private:
  std::size_t* most_;
  bool* on_loop_;
  const Loop& loop_;
  std::size_t count_ = 0;
};

TEST_F(RequestTest, AReaderTakesALongBodyAsItComesAndFailuresStayText) {
  constexpr std::size_t kSize = 8u << 20;
  server_.handle([](TlsServer::Exchange& exchange) {
    const bool good = exchange.request.target == "/good";
    exchange.respond(good ? 200 : 404, good ? std::string(kSize, 'x') : "12345");
  });
  for (const bool gzip : {false, true}) {
    std::size_t most = 0;
    bool on_loop = true;
    const auto reading = [&](const std::string& target) {
      Request request = get_request(target);
      request.accept_gzip = gzip;
      request.make_reader = [&] {
        return std::make_unique<Counting>(&most, &on_loop, loop_.loop());
      };
      return request;
    };
    const auto good = send(reading("/good"));
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(std::any_cast<std::size_t>(good->decoded), kSize);
    EXPECT_TRUE(good->body.empty());
    EXPECT_LT(most, kSize / 4) << "it comes in pieces";
    EXPECT_FALSE(on_loop);
    const auto bad = send(reading("/bad"));
    ASSERT_TRUE(bad.ok());
    EXPECT_FALSE(bad->decoded.has_value());
    EXPECT_EQ(bad->body, "12345");
  }
}

TEST_F(RequestTest, ReusesConnections) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(get_request("/")).ok());
  // cpprestsdk gives a connection back a moment after the answer: on a busy machine a few take
  // turns, but far fewer than one for each request.
  EXPECT_LT(server_.connections(), 10);
}

TEST_F(RequestTest, AfterACutOneFailureIsEnoughToUseNewConnections) {
  constexpr int kWarm = 16;
  std::atomic<int> arrived{0};
  server_.handle([&arrived](TlsServer::Exchange& exchange) {
    ++arrived;
    EXPECT_TRUE(eventually([&arrived] { return arrived >= kWarm; }));
    exchange.respond(200, "{}");
  });
  std::vector<std::future<Result<Response>>> answers;
  for (int i = 0; i < kWarm; ++i) answers.push_back(begin(get_request("/")));
  for (auto& answer : answers) ASSERT_TRUE(get(answer).ok());
  ASSERT_EQ(server_.connections(), kWarm);
  server_.cut_connections();
  ASSERT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
  int failures = 0;
  while (!send(get_request("/")).ok() && failures <= kWarm) ++failures;
  EXPECT_LE(failures, 1);
}

TEST_F(RequestTest, DoesNotFollowRedirects) {
  TlsServer other(ca_.issue("other", {"IP:127.0.0.1"}));
  server_.handle([&other](TlsServer::Exchange& exchange) {
    exchange.respond(302, "", "Location: " + other.url() + "/stolen\r\n");
  });
  const auto response = send(get_request("/"));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 302);
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(RequestTest, TheDeadlineIsForTheWholeRequestNotForOneStepOfIt) {
  // A byte every now and then keeps any idle limit content.
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    while (exchange.chunk("x")) std::this_thread::sleep_for(20ms);
  });
  Request request = get_request("/");
  request.method = "PUT";
  request.body = "{}";
  request.timeout = 300ms;
  const auto began = std::chrono::steady_clock::now();
  const auto response = send(std::move(request));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_TRUE(response.error().maybe_applied);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
  EXPECT_TRUE(eventually([this] { return unfinished() == 0; }));
}

TEST_F(RequestTest, ACancelledRequestAnswersCancelledAndLeavesTheNetwork) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  CallId id = 0;
  auto answer = begin(get_request("/"), &id);
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 1; }));
  cancel(id);
  const auto response = get(answer);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
  EXPECT_TRUE(eventually([this] { return unfinished() == 0; }));
}

TEST_F(RequestTest, WhatWaitsForAConnectionIsCancelledAsNeverSent) {
  auto one_at_a_time = config();
  one_at_a_time.max_in_flight = 1;
  make(one_at_a_time);
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  CallId first = 0, second = 0;
  auto first_answer = begin(get_request("/first"), &first);
  auto second_answer = begin(get_request("/second"), &second);
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 1; }));
  cancel(second);
  const auto response = get(second_answer);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(response.error().maybe_applied);
  cancel(first);
  EXPECT_FALSE(get(first_answer).ok());
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(RequestTest, WhatIsLateBeforeItIsSentIsNeverSent) {
  make(config());
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(200, "{}"); });
  Request late = get_request("/late");
  late.timeout = Duration::zero();
  auto late_answer = begin(std::move(late));
  const auto response = get(late_answer);
  ASSERT_FALSE(response.ok());
  EXPECT_FALSE(response.error().maybe_applied);
  auto answer = begin(get_request("/in-time"));
  EXPECT_TRUE(get(answer).ok());
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(RequestTest, NeverMoreThanTheLimitAreInFlightAndAllAreAnswered) {
  auto limited = config();
  limited.max_in_flight = 3;
  make(limited);
  std::atomic<int> now{0}, most{0};
  server_.handle([&](TlsServer::Exchange& exchange) {
    const int current = ++now;
    int seen = most;
    while (seen < current && !most.compare_exchange_weak(seen, current)) {
    }
    std::this_thread::sleep_for(5ms);
    --now;
    exchange.respond(200, "{}");
  });
  std::vector<std::future<Result<Response>>> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(begin(get_request("/" + std::to_string(i))));
  for (auto& answer : answers) EXPECT_TRUE(get(answer).ok());
  EXPECT_LE(most, 3);
  EXPECT_LE(server_.connections(), 4);
}

TEST_F(RequestTest, TooManyWaitingRequestsAreRefusedAsNeverSent) {
  auto tiny = config();
  tiny.max_in_flight = 1;
  tiny.max_waiting = 1;
  make(tiny);
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  auto running = begin(get_request("/running"));
  auto waiting = begin(get_request("/waiting"));
  const auto refused = send(get_request("/refused"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kTransient);
  EXPECT_FALSE(refused.error().maybe_applied);
  destroy();
  EXPECT_EQ(get(running).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(get(waiting).error().code, ErrorCode::kCancelled);
}

TEST_F(RequestTest, RequestsThatHangHoldUpNothingMoreUrgent) {
  auto tiny = config();
  tiny.max_in_flight = 2;
  tiny.reserved = 1;
  make(tiny);
  server_.handle([](TlsServer::Exchange& exchange) {
    if (exchange.request.target != "/hangs") return exchange.respond(200, "{}");
    exchange.wait_for_client_to_go();
  });
  const auto hang = [this](Urgency urgency) {
    Request request = get_request("/hangs");
    request.urgency = urgency;
    return begin(std::move(request));
  };
  std::vector<std::future<Result<Response>>> hanging;
  for (int i = 0; i < 5; ++i) hanging.push_back(hang(Urgency::kOrdinary));
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 2; }));
  Request look = get_request("/look");
  look.urgency = Urgency::kUrgent;
  EXPECT_TRUE(send(look).ok());
  for (int i = 0; i < 5; ++i) hanging.push_back(hang(Urgency::kUrgent));
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 4; }));
  Request renewal = get_request("/renewal");
  renewal.urgency = Urgency::kVital;
  EXPECT_TRUE(send(renewal).ok());
  EXPECT_EQ(server_.requests().size(), 5u);
  destroy();
  for (auto& answer : hanging) EXPECT_FALSE(get(answer).ok());
}

TEST_F(RequestTest, WhatIsUrgentGoesFirstAndAmongItselfInItsOrder) {
  auto tiny = config();
  tiny.max_in_flight = 1;
  tiny.reserved = 0;
  tiny.max_waiting = 1;
  make(tiny);
  std::promise<void> go;
  server_.handle([gone = go.get_future().share()](TlsServer::Exchange& exchange) {
    gone.wait();
    exchange.respond(200, "{}");
  });
  std::vector<std::future<Result<Response>>> answers;
  answers.push_back(begin(get_request("/running")));
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 1; }));
  answers.push_back(begin(get_request("/waiting")));
  for (const auto& [target, urgency] :
       {std::pair("/first", Urgency::kUrgent), std::pair("/second", Urgency::kUrgent),
        std::pair("/vital", Urgency::kVital)}) {
    Request request = get_request(target);
    request.urgency = urgency;
    answers.push_back(begin(std::move(request)));
  }
  go.set_value();
  for (auto& answer : answers) EXPECT_TRUE(get(answer).ok());
  std::vector<std::string> order;
  for (const auto& request : server_.requests()) order.push_back(request.target);
  EXPECT_EQ(order,
            (std::vector<std::string>{"/running", "/vital", "/first", "/second", "/waiting"}));
}

TEST_F(RequestTest, AnAnswerLargerThanAllowedEndsTheRequest) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    while (exchange.chunk(std::string(10'000, 'x'))) {
    }
  });
  Request request = get_request("/");
  request.max_response_bytes = 100'000;
  const auto response = send(std::move(request));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTerminal);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(RequestTest, LargeAnswersOfAllFormsArriveWhole) {
  const std::string text = big_text(3'000'000);
  server_.handle([&text](TlsServer::Exchange& exchange) {
    if (exchange.request.target == "/length") return exchange.respond(200, text);
    exchange.begin_chunked();
    for (std::size_t i = 0; i < text.size(); i += 100'000) exchange.chunk(text.substr(i, 100'000));
    exchange.end_chunked();
  });
  for (const char* const target : {"/length", "/chunked"}) {
    const auto response = send(get_request(target));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->body == text);
  }
}

TEST_F(RequestTest, GzipIsAskedForOnlyWhereItIsAccepted) {
  Request request = get_request("/list");
  request.accept_gzip = true;
  ASSERT_TRUE(send(std::move(request)).ok());
  ASSERT_TRUE(send(get_request("/get")).ok());
  const auto seen = server_.requests();
  EXPECT_NE(seen.at(0).headers.at("accept-encoding").find("gzip"), std::string::npos);
  EXPECT_EQ(seen.at(1).headers.count("accept-encoding"), 0u);
}

TEST_F(RequestTest, ARefusedConnectionCertainlyAppliedNothing) {
  auto nobody = config();
  {
    TlsServer gone(ca_.issue("gone", {"IP:127.0.0.1"}));
    nobody.base_url = gone.url();
  }
  make(nobody);
  Request request = get_request("/");
  request.method = "POST";
  request.body = "{}";
  const auto response = send(std::move(request));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_FALSE(response.error().maybe_applied);
}

TEST_F(RequestTest, ANameThatDoesNotResolveCertainlyAppliedNothing) {
  auto nowhere = config();
  nowhere.base_url = "https://no-such-host.invalid:6443";
  make(nowhere);
  const auto response = send(get_request("/"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_FALSE(response.error().maybe_applied);
}

TEST_F(RequestTest, AConnectionThatBreaksAfterTheRequestMayHaveAppliedIt) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.drop(); });
  Request request = get_request("/");
  request.method = "POST";
  request.body = "{}";
  const auto response = send(std::move(request));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
  EXPECT_TRUE(response.error().maybe_applied);
}

TEST_F(RequestTest, AServerThatDiesWithAPooledConnectionMayHaveAppliedTheRequest) {
  // The request goes out over the kept connection; cpprestsdk then sends it again by itself, over a
  // new connection that is refused. The first one may have been carried out all the same.
  auto server = std::make_unique<TlsServer>(ca_.issue("server", {"IP:127.0.0.1"}));
  auto to_server = config();
  to_server.base_url = server->url();
  make(to_server);
  ASSERT_TRUE(send(get_request("/warm")).ok());
  std::promise<void> received;
  server->handle([&received](TlsServer::Exchange& exchange) {
    received.set_value();
    exchange.wait_for_client_to_go();
  });
  Request request = get_request("/write");
  request.method = "PUT";
  request.body = "{}";
  auto answer = begin(std::move(request));
  ASSERT_EQ(received.get_future().wait_for(kPatience), std::future_status::ready);
  server.reset();
  const auto response = get(answer);
  ASSERT_FALSE(response.ok());
  EXPECT_TRUE(response.error().maybe_applied);
}

TEST_F(RequestTest, ATruncatedAnswerIsNoAnswer) {
  server_.handle([](TlsServer::Exchange& exchange) {
    if (exchange.request.target == "/chunked") {
      exchange.begin_chunked();
      exchange.chunk(R"({"items": [)");
    } else {
      exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    }
    exchange.drop();
  });
  for (const char* const target : {"/chunked", "/length"}) {
    const auto response = send(get_request(target));
    ASSERT_FALSE(response.ok()) << target;
    EXPECT_EQ(response.error().code, ErrorCode::kTransient);
    EXPECT_TRUE(response.error().maybe_applied);
  }
}

TEST_F(RequestTest, GarbageInsteadOfAnAnswerIsAnError) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    exchange.drop();
  });
  const auto response = send(get_request("/"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTransient);
}

TEST_F(RequestTest, ATargetThatCannotBeSentIsTerminal) {
  const auto response = send(get_request("/a b\r\nX: y"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kTerminal);
  EXPECT_FALSE(response.error().maybe_applied);
  EXPECT_TRUE(server_.requests().empty());
  EXPECT_TRUE(send(get_request("/good")).ok());
}

TEST_F(RequestTest, DestructionAnswersEverythingAndWaitsForTheNetwork) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  std::vector<std::future<Result<Response>>> answers;
  for (int i = 0; i < 10; ++i) answers.push_back(begin(get_request("/" + std::to_string(i))));
  StreamLog stream;
  StreamRequest watch;
  watch.target = "/watch";
  open(std::move(watch), stream);
  ASSERT_TRUE(eventually([this] { return server_.requests().size() == 11; }));
  destroy();
  for (auto& answer : answers) EXPECT_EQ(get(answer).error().code, ErrorCode::kCancelled);
  ASSERT_TRUE(eventually([&] { return stream.ended(); }));
  EXPECT_EQ(stream.error()->code, ErrorCode::kCancelled);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(RequestTest, AddressesThatCannotBeReachedAreRefusedAtOnceWithAReason) {
  const auto message_for = [this](const std::string& url) {
    auto wrong = config();
    wrong.base_url = url;
    return loop_.run([&] {
      const auto made = CpprestTransport::create(loop_.loop(), wrong, Log());
      return made.ok() ? std::string() : made.error().message;
    });
  };
  EXPECT_NE(message_for("https://[fe80::1%25eth0]:6443").find("IPv6"), std::string::npos);
  EXPECT_NE(message_for("http://[::1]:8080").find("https://"), std::string::npos);
  EXPECT_NE(message_for("ftp://host").find("ftp"), std::string::npos);
  EXPECT_NE(message_for("https://").find("host"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::http
