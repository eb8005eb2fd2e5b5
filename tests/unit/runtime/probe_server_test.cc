#include "operator/runtime/probe_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace holdfast::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Generous: only a server that hangs comes near it.
constexpr Duration kPatience = seconds(20);

// A client that may behave as badly as it likes.
class Client {
 public:
  explicit Client(std::uint16_t port, bool ipv6 = false)
      : fd_(socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0)) {
    receive_limit(kPatience);
    if (ipv6) {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(port);
      address.sin6_addr = in6addr_loopback;
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    } else {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    }
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void receive_limit(Duration limit) {
    timeval value{};
    value.tv_sec = std::chrono::duration_cast<seconds>(limit).count();
    value.tv_usec = static_cast<suseconds_t>((limit.count() / 1000) % 1'000'000);
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value));
  }
  // False: the server has closed the connection.
  bool write(const std::string& text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Until the server closes.
  std::string read_all() {
    std::string text;
    char part[4096];
    ssize_t count = 0;
    while ((count = recv(fd_, part, sizeof(part), 0)) > 0) {
      text.append(part, static_cast<std::size_t>(count));
    }
    closed_ = count == 0 || errno == ECONNRESET;
    return text;
  }
  // The server has closed the connection (and not merely said nothing for the receive limit).
  bool closed() const { return closed_; }

 private:
  int fd_;
  bool connected_ = false;
  bool closed_ = false;
};

std::string ask(std::uint16_t port, const std::string& text) {
  Client client(port);
  EXPECT_TRUE(client.connected());
  client.write(text);
  return client.read_all();
}

std::string get(std::uint16_t port, const std::string& target) {
  return ask(port, "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

class ProbeServerTest : public testing::Test {
 protected:
  void serve(ProbeServer::Limits limits = {}, const std::string& host = "127.0.0.1") {
    server_ = std::make_unique<ProbeServer>(
        std::map<std::string, ProbeServer::Handler>{{"/healthz", answer_at_once([] {
                                                       return ProbeAnswer{200, "ok\n"};
                                                     })},
                                                    {"/readyz", answer_at_once([] {
                                                       return ProbeAnswer{503, "not ready: pods\n"};
                                                     })},
                                                    {"/debug/ownership", answer_at_once([] {
                                                       return ProbeAnswer{200, "{}\n"};
                                                     })},
                                                    {"/metrics",
                                                     [this](ProbeServer::Answer answer) {
                                                       std::lock_guard<std::mutex> lock(mutex_);
                                                       asked_.push_back(std::move(answer));
                                                     }}},
        limits);
    const Result<> started = server_->start(host, 0);
    ASSERT_TRUE(started.ok()) << started.error().message;
    port_ = server_->port();
  }
  // What was asked of /metrics; waits for the first.
  ProbeServer::Answer asked() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!asked_.empty()) return asked_.front();
      std::this_thread::yield();
    }
    ADD_FAILURE() << "/metrics was never asked for";
    return [](const ProbeAnswer&) {};
  }

  std::mutex mutex_;
  std::vector<ProbeServer::Answer> asked_;
  std::unique_ptr<ProbeServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(ProbeServerTest, GetIsAnsweredAndTheConnectionClosed) {
  serve();
  const std::string answer = get(port_, "/healthz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nok\n"));
}

TEST_F(ProbeServerTest, TheHandlersStatusAndReasonReachTheClient) {
  serve();
  const std::string answer = get(port_, "/readyz?verbose");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, EndsWith("not ready: pods\n"));
}

TEST_F(ProbeServerTest, HeadIsAnsweredWithoutABody) {
  serve();
  const std::string answer = ask(port_, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(ProbeServerTest, UnknownPathsAreNotFoundAndLearnWhatThereIs) {
  serve();
  EXPECT_THAT(get(port_, "/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(port_, "/healthz/../x"), HasSubstr("/healthz /metrics /readyz"));
}

TEST_F(ProbeServerTest, OtherMethodsAreNotAllowed) {
  serve();
  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE"}) {
    const std::string answer =
        ask(port_,
            std::string(method) + " /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
}

TEST_F(ProbeServerTest, ALargeBodyIsNotReadAndTheAnswerStillArrives) {
  serve();
  Client client(port_);
  client.write("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
               std::string(100'000, 'x'));
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 405 "));
}

TEST_F(ProbeServerTest, GarbageIsRefused) {
  serve();
  for (const std::string& garbage :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS\r\n\r\n", 20),
        std::string("GET\r\n\r\n"), std::string("GET /healthz HTTP/9.9\r\n\r\n"),
        std::string("GET /healthz HTTP/1.1\r\nbroken header\r\n\r\n"),
        std::string("\0\0\0\0\r\n\r\n", 8)}) {
    EXPECT_THAT(ask(port_, garbage), StartsWith("HTTP/1.1 400 "));
  }
  EXPECT_THAT(get(port_, "/healthz"), StartsWith("HTTP/1.1 200 ")) << "and it lives on";
}

TEST_F(ProbeServerTest, HeadersBeyondEightKilobytesAreRefused) {
  serve();
  const std::string head = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  EXPECT_THAT(ask(port_, head + "A: " + std::string(7000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(port_, head + "A: " + std::string(9000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  std::string many = head;
  for (int i = 0; i < 5000; ++i) many += "A" + std::to_string(i) + ": b\r\n";
  EXPECT_THAT(ask(port_, many + "\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(port_, "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(ProbeServerTest, ASilentClientIsCutOffAtTheLimit) {
  serve({.connection = milliseconds(200)});
  Client client(port_);
  client.write("GET /healthz HT");
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.closed());
}

TEST_F(ProbeServerTest, AClientThatDripsBytesGainsNoTime) {
  serve({.connection = milliseconds(200)});
  Client client(port_);
  client.receive_limit(milliseconds(20));
  const auto began = std::chrono::steady_clock::now();
  client.write("GET /healthz HTTP/1.1\r\nA: ");
  while (!client.closed() && client.write("a") &&
         std::chrono::steady_clock::now() - began < kPatience) {
    client.read_all();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, kPatience);
}

TEST_F(ProbeServerTest, SlowClientsCannotLockOthersOut) {
  serve({.connections = 4});
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(std::make_unique<Client>(port_));
    ASSERT_TRUE(silent.back()->write("GET /he"));
  }
  EXPECT_THAT(get(port_, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(silent.front()->read_all(), "");
  EXPECT_TRUE(silent.front()->closed()) << "the oldest gave way";
}

TEST_F(ProbeServerTest, AnAnswerMayComeFromAnotherThread) {
  serve();
  std::thread loop([this] { asked()({200, "up 1\n", "text/plain; version=0.0.4"}); });
  const std::string answer = get(port_, "/metrics");
  loop.join();
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4\r\n"));
  EXPECT_THAT(answer, EndsWith("up 1\n"));
}

TEST_F(ProbeServerTest, TheFirstAnswerCounts) {
  serve();
  std::thread loop([this] {
    const auto answer = asked();
    answer({200, "first"});
    answer({500, "second"});
  });
  const std::string answer = get(port_, "/metrics");
  loop.join();
  EXPECT_THAT(answer, EndsWith("first"));
}

TEST_F(ProbeServerTest, AStuckLoopCostsMetricsAndNotLiveness) {
  serve({.answer = milliseconds(100)});
  Client metrics(port_);
  metrics.write("GET /metrics HTTP/1.1\r\n\r\n");
  asked();
  EXPECT_THAT(get(port_, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(metrics.read_all(), StartsWith("HTTP/1.1 503 "));
}

TEST_F(ProbeServerTest, StopClosesWhatIsOpenAndLateAnswersHaveNoEffect) {
  serve();
  Client metrics(port_);
  metrics.write("GET /metrics HTTP/1.1\r\n\r\n");
  const auto late = asked();
  server_->stop();
  EXPECT_EQ(metrics.read_all(), "");
  EXPECT_FALSE(Client(port_).connected());
  late({200, "late"});
  server_.reset();
  late({200, "later"});
}

TEST_F(ProbeServerTest, ATakenPortIsRefusedWithWhatToDo) {
  serve();
  ProbeServer second({});
  const Result<> started = second.start("127.0.0.1", port_);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message, HasSubstr("127.0.0.1:" + std::to_string(port_)));
  EXPECT_THAT(started.error().message, HasSubstr("--metrics-address"));
}

TEST_F(ProbeServerTest, OnlyTheAskedAddressIsBound) {
  serve();
  EXPECT_EQ(server_->address(), "127.0.0.1:" + std::to_string(port_));
  EXPECT_FALSE(Client(port_, /*ipv6=*/true).connected());
}

TEST_F(ProbeServerTest, AllAddressesMeansIpv4AndIpv6) {
  serve({}, "");
  EXPECT_THAT(get(port_, "/healthz"), StartsWith("HTTP/1.1 200 "));
  // A host without IPv6 serves IPv4 alone.
  EXPECT_EQ(Client(port_, /*ipv6=*/true).connected(),
            server_->address() == "[::]:" + std::to_string(port_));
}

TEST_F(ProbeServerTest, DebugPathsAreAnsweredOnLoopbackConnections) {
  serve({}, "");
  EXPECT_THAT(get(port_, "/debug/ownership"), StartsWith("HTTP/1.1 200 "));
}

TEST(ProbeServerPeers, OnlyLoopbackAddressesAreThisHosts) {
  for (const char* const own : {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_this_host(own)) << own;
  }
  for (const char* const other : {"10.0.0.1", "0.0.0.0", "::", "fd00::1", "::ffff:10.0.0.1",
                                  "::127.0.0.1", "not an address", ""}) {
    EXPECT_FALSE(is_this_host(other)) << other;
  }
}

TEST_F(ProbeServerTest, ManyClientsAtOnceAreAllAnswered) {
  serve();
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([this, &answered] {
      for (int round = 0; round < 25; ++round) {
        if (get(port_, "/healthz").find(" 200 OK") != std::string::npos) ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 200);
}

}  // namespace
}  // namespace holdfast::runtime
