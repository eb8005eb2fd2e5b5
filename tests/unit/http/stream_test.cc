#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

using namespace std::chrono_literals;

class StreamTest : public TransportTest {
 protected:
  // The test's end comes only when the server has seen the client go.
  ~StreamTest() override { destroy(); }
  StreamLog log_;
};

StreamRequest watch() {
  StreamRequest request;
  request.target = "/watch";
  return request;
}

TEST_F(StreamTest, GivesLinesAsTheyComeHoweverTheyAreCut) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("on");
    exchange.chunk("e\ntwo\n\nthr");
    exchange.chunk("ee\n");
    exchange.wait_for_client_to_go();
  });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.line_count() == 3; }));
  EXPECT_EQ(log_.opened_status(), 200);
  EXPECT_EQ(log_.lines(), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_FALSE(log_.ended());
}

TEST_F(StreamTest, ALineIsGivenWithoutWaitingForTheNext) {
  std::promise<void> seen;
  auto was_seen = seen.get_future().share();
  server_.handle([was_seen](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("first\n");
    was_seen.wait_for(kPatience);
    exchange.chunk("second\n");
    exchange.end_chunked();
  });
  open(watch(), log_);
  EXPECT_TRUE(eventually([&] { return log_.line_count() == 1; }));
  seen.set_value();
  EXPECT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.line_count(), 2u);
}

TEST_F(StreamTest, ACleanEndHasNoError) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("one\n");
    exchange.end_chunked();
  });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_FALSE(log_.error().has_value());
  EXPECT_EQ(log_.lines(), std::vector<std::string>{"one"});
}

TEST_F(StreamTest, ATruncatedStreamEndsWithAnErrorAfterItsLines) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("one\n");
    exchange.write("40\r\nhalf a chunk");
    exchange.drop();
  });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  ASSERT_TRUE(log_.error().has_value());
  EXPECT_EQ(log_.error()->code, ErrorCode::kTransient);
  EXPECT_EQ(log_.lines(), std::vector<std::string>{"one"});
}

TEST_F(StreamTest, AnEndWithinALineIsAnError) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("one\ntw");
    exchange.end_chunked();
  });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  ASSERT_TRUE(log_.error().has_value());
  EXPECT_EQ(log_.error()->code, ErrorCode::kTransient);
  EXPECT_EQ(log_.lines(), std::vector<std::string>{"one"});
}

TEST_F(StreamTest, AStatusThatIsNot200ComesWithItsBodyAndEndsTheStream) {
  server_.handle(
      [](TlsServer::Exchange& exchange) { exchange.respond(410, R"({"reason": "Expired"})"); });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.opened_status(), 410);
  EXPECT_EQ(log_.opened_body(), R"({"reason": "Expired"})");
  EXPECT_EQ(log_.line_count(), 0u);
}

TEST_F(StreamTest, TheBodyOfARefusalIsBounded) {
  server_.handle(
      [](TlsServer::Exchange& exchange) { exchange.respond(500, std::string(1'000'000, 'x')); });
  open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.opened_body().size(), 65536u);
}

TEST_F(StreamTest, ACancelledStreamEndsCancelledAndClosesItsConnection) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("one\n");
    exchange.wait_for_client_to_go();
  });
  const CallId id = open(watch(), log_);
  ASSERT_TRUE(eventually([&] { return log_.line_count() == 1; }));
  cancel(id);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.error()->code, ErrorCode::kCancelled);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
  EXPECT_TRUE(eventually([this] { return unfinished() == 0; }));
}

TEST_F(StreamTest, AHandlerMayCancelItsOwnStream) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    while (exchange.chunk("line\n")) {
    }
  });
  CallId id = 0;
  log_.on_batch = [&] { transport_->cancel(id); };
  loop_.run([&] { id = transport_->open(watch(), log_.handlers()); });
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.error()->code, ErrorCode::kCancelled);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(StreamTest, AStreamThatGoesSilentIsEnded) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("one\n");
    exchange.wait_for_client_to_go();
  });
  StreamRequest request = watch();
  request.idle_timeout = 200ms;
  open(std::move(request), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.error()->code, ErrorCode::kTransient);
  EXPECT_EQ(log_.line_count(), 1u);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(StreamTest, AStreamWithTrafficIsNotIdle) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    for (int i = 0; i < 40; ++i) {
      exchange.chunk("line\n");
      std::this_thread::sleep_for(20ms);
    }
    exchange.end_chunked();
  });
  StreamRequest request = watch();
  request.idle_timeout = 600ms;
  open(std::move(request), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_FALSE(log_.error().has_value());
  EXPECT_EQ(log_.line_count(), 40u);
}

TEST_F(StreamTest, AServerThatSendsNoHeadIsGivenUp) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  StreamRequest request = watch();
  request.open_timeout = 200ms;
  open(std::move(request), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.error()->code, ErrorCode::kTransient);
  EXPECT_EQ(log_.opened_status(), 0);
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(StreamTest, ALineThatIsTooLongEndsTheStream) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    exchange.chunk("fine\n");
    while (exchange.chunk(std::string(1000, 'x'))) {
    }
  });
  StreamRequest request = watch();
  request.max_line_bytes = 10'000;
  open(std::move(request), log_);
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_EQ(log_.error()->code, ErrorCode::kTerminal);
  EXPECT_EQ(log_.lines(), std::vector<std::string>{"fine"});
  EXPECT_TRUE(eventually([this] { return server_.open_connections() == 0; }));
}

TEST_F(StreamTest, ASlowReaderMakesTheServerWaitAndLosesNothing) {
  constexpr std::size_t kLines = 4'000;
  constexpr std::size_t kLineBytes = 10'000;  // 40 MB in all
  std::atomic<std::size_t> written{0};
  server_.handle([&](TlsServer::Exchange& exchange) {
    exchange.begin_chunked();
    const std::string line = std::string(kLineBytes - 1, 'x') + "\n";
    for (std::size_t i = 0; i < kLines && exchange.chunk(line); ++i) written += line.size();
    exchange.end_chunked();
  });
  auto small = config();
  small.max_stream_bytes = 100'000;
  make(small);
  std::promise<void> go;
  auto may_go = go.get_future().share();
  log_.on_batch = [may_go] { may_go.wait_for(kPatience); };
  StreamRequest request = watch();
  request.idle_timeout = 1s;
  open(std::move(request), log_);
  const auto opened = std::chrono::steady_clock::now();
  // The server writes until the sockets' buffers are full and then no more.
  std::size_t before = 1;
  ASSERT_TRUE(eventually([&] {
    const std::size_t now = written;
    const bool stalled = now > 0 && now == before;
    before = now;
    std::this_thread::sleep_for(200ms);
    // Longer than the idle limit: waiting for us is not idleness.
    return stalled && now == written && std::chrono::steady_clock::now() - opened > 1300ms;
  }));
  EXPECT_LT(written, 20'000'000u);
  go.set_value();
  ASSERT_TRUE(eventually([&] { return log_.ended(); }));
  EXPECT_FALSE(log_.error().has_value()) << log_.error()->message;
  EXPECT_EQ(log_.line_count(), kLines);
}

TEST_F(StreamTest, StreamsDoNotTakeTheRequestsPlaces) {
  auto one = config();
  one.max_in_flight = 1;
  make(one);
  server_.handle([](TlsServer::Exchange& exchange) {
    if (exchange.request.target != "/watch") return exchange.respond(200, "{}");
    exchange.begin_chunked();
    exchange.wait_for_client_to_go();
  });
  StreamLog other;
  open(watch(), log_);
  open(watch(), other);
  ASSERT_TRUE(
      eventually([&] { return log_.opened_status() == 200 && other.opened_status() == 200; }));
  EXPECT_TRUE(send(get_request("/")).ok());
  destroy();
  EXPECT_TRUE(eventually([&] { return other.ended(); }));
}

}  // namespace
}  // namespace holdfast::http
