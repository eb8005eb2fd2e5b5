// Real TLS on loopback: what is sent, and to whom.
#include "operator/notify/https_poster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "tests/support/certificates.h"
#include "tests/support/connect_proxy.h"
#include "tests/support/descriptor_limit.h"
#include "tests/support/front.h"
#include "tests/support/loop_thread.h"
#include "tests/support/tls_server.h"

namespace holdfast::notify {
namespace {

using std::chrono::seconds;
using test::CertificateAuthority;
using test::TlsServer;

class CaFile : public FileReader {
 public:
  explicit CaFile(std::string ca) : ca_(std::move(ca)) {}
  Result<std::string> read(const std::string&, std::size_t) const override { return ca_; }

 private:
  const std::string ca_;
};

class HttpsPosterTest : public ::testing::Test {
 protected:
  HttpsPosterTest() {
    look_up_ = [](const std::string&) { return Result(Addresses{"127.0.0.1"}); };
  }
  ~HttpsPosterTest() override {
    thread_.run([this] { poster_.reset(); });
  }
  using Addresses = std::vector<std::string>;

  Target target(const TlsServer& server, const std::string& name = "hooks.example.com") {
    Target target;
    target.name = "chat";
    target.host = name;
    target.port = server.port();
    target.path = "/in?k=1";
    target.ca_file = "ca";
    target.allowed = {*parse_range("127.0.0.1/32")};
    return target;
  }

  Result<Answer> post(const Target& target) {
    auto promise = std::make_shared<std::promise<Result<Answer>>>();
    auto answer = promise->get_future();
    thread_.run([&] {
      if (!poster_) {
        poster_ = std::make_unique<HttpsPoster>(
            thread_.loop(), ca_file_, [this](const std::string& host) { return look_up_(host); },
            timeout_, [this](const std::string& name) { return environment_[name]; });
      }
      poster_->post(target, {"uid/1", 42, "v1,abc", "{\"a\":1}"},
                    [promise](Result<Answer> result) { promise->set_value(std::move(result)); });
    });
    if (answer.wait_for(test::kPatience) != std::future_status::ready) {
      return make_error(ErrorCode::kTerminal, "the test waited in vain");
    }
    return answer.get();
  }

  CertificateAuthority ca_{"test"};
  CaFile ca_file_{ca_.certificate()};
  TlsServer server_{ca_.issue("server", {"DNS:hooks.example.com"})};
  HttpsPoster::LookUp look_up_;
  Duration timeout_ = seconds(15);
  std::map<std::string, std::string> environment_;
  test::LoopThread thread_;
  std::unique_ptr<HttpsPoster> poster_;
};

TEST_F(HttpsPosterTest, TheMessageHasItsHeadersAndTheNameStandsInSniAndHost) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  const Result<Answer> answer = post(target(server_));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 204);
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 1U);
  const TlsServer::Request& request = requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/in?k=1");
  EXPECT_EQ(request.server_name, "hooks.example.com");
  EXPECT_EQ(request.headers.at("host"), "hooks.example.com:" + std::to_string(server_.port()));
  EXPECT_EQ(request.headers.at("webhook-id"), "uid/1");
  EXPECT_EQ(request.headers.at("webhook-timestamp"), "42");
  EXPECT_EQ(request.headers.at("webhook-signature"), "v1,abc");
  EXPECT_EQ(request.body, "{\"a\":1}");
}

TEST_F(HttpsPosterTest, InterimAnswersAreSkippedUntilTheFinalOne) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("HTTP/1.1 102 Processing\r\n\r\n");
    exchange.write("HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
    exchange.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nretry-after: 7\r\n\r\n");
  });
  const Result<Answer> refused = post(target(server_));
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->retry_after, seconds(7));
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 Yes\r\n\r\n");
  });
  const Result<Answer> taken = post(target(server_));
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken->status, 204);
}

TEST_F(HttpsPosterTest, ATargetThatOnlyGivesInterimAnswersFails) {
  server_.handle([](TlsServer::Exchange& exchange) {
    for (int i = 0; i < 200; ++i) exchange.write("HTTP/1.1 102 Processing\r\n\r\n");
    exchange.wait_for_client_to_go();
  });
  const Result<Answer> answer = post(target(server_));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("no final answer"), std::string::npos);
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    exchange.wait_for_client_to_go();
  });
  const Result<Answer> upgrade = post(target(server_));
  ASSERT_TRUE(upgrade.ok());
  EXPECT_EQ(upgrade->status, 101);
}

TEST_F(HttpsPosterTest, ATargetMayHaveAnIpv6AddressInItsUrl) {
  if (!test::Front::can_listen("::1")) GTEST_SKIP() << "this machine has no IPv6";
  server_.use_identity(ca_.issue("server", {"IP:::1"}));
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  test::Front::Config config;
  config.address = "::1";
  config.target_port = server_.port();
  const test::Front front(config);
  look_up_ = [](const std::string&) {
    return Result<Addresses>(make_error(ErrorCode::kTransient, "an address is not looked up"));
  };
  Target literal = target(server_, "::1");
  literal.port = front.port();
  const Result<Answer> forbidden = post(literal);
  ASSERT_FALSE(forbidden.ok());
  EXPECT_NE(forbidden.error().message.find("allowedCIDRs"), std::string::npos);
  literal.name = "allowed";
  literal.allowed = {*parse_range("::1/128")};
  const Result<Answer> answer = post(literal);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(server_.requests().at(0).headers.at("host"), "[::1]:" + std::to_string(front.port()));
}

TEST_F(HttpsPosterTest, ItConnectsToTheAddressThatItHasCheckedAndAsksOnce) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  std::atomic<int> asked = 0;
  // The second answer is another address, which the target may not have.
  look_up_ = [&](const std::string&) {
    return Result(Addresses{asked++ == 0 ? "127.0.0.1" : "127.0.0.2"});
  };
  ASSERT_TRUE(post(target(server_)).ok());
  EXPECT_EQ(asked, 1);
  const Result<Answer> second = post(target(server_));
  EXPECT_EQ(asked, 2);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("127.0.0.2"), std::string::npos);
  EXPECT_NE(second.error().message.find("allowedCIDRs"), std::string::npos);
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(HttpsPosterTest, WithoutDescriptorsATryFailsAndALaterOneWorks) {
  ASSERT_TRUE(post(target(server_)).ok());
  Target other = target(server_);
  other.name = "another";
  {
    const test::DescriptorLimit limit(0);
    const Result<Answer> failed = post(other);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kTransient);
  }
  const Result<Answer> answer = post(other);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
}

// ---- A proxy.

class HttpsPosterProxyTest : public HttpsPosterTest {
 protected:
  HttpsPosterProxyTest() {
    server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
    environment_["HTTPS_PROXY"] = "http://me:secret@127.0.0.1:" + std::to_string(proxy_.port());
  }
  test::ConnectProxy proxy_{server_.port()};
};

TEST_F(HttpsPosterProxyTest, IsAskedForTheAddressThatWasCheckedAndNeverForTheName) {
  const Result<Answer> answer = post(target(server_));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  const auto heads = proxy_.heads();
  ASSERT_EQ(heads.size(), 1U);
  EXPECT_EQ(heads[0].find("CONNECT 127.0.0.1:" + std::to_string(server_.port()) + " "), 0U);
  EXPECT_EQ(heads[0].find("hooks.example.com"), std::string::npos);
  EXPECT_NE(heads[0].find("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), std::string::npos);
  // TLS goes through it from end to end, with the name.
  EXPECT_EQ(server_.requests().at(0).server_name, "hooks.example.com");
}

TEST_F(HttpsPosterProxyTest, DoesNotLeadWhereTheTargetMayNotGo) {
  look_up_ = [](const std::string&) { return Result(Addresses{"169.254.169.254", "10.0.0.1"}); };
  const Result<Answer> answer = post(target(server_));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("allowedCIDRs"), std::string::npos);
  EXPECT_TRUE(proxy_.heads().empty());
}

TEST_F(HttpsPosterProxyTest, IsLeftOutForTheTargetsOfNoProxy) {
  environment_["NO_PROXY"] = "other.example.com,hooks.example.com";
  ASSERT_TRUE(post(target(server_)).ok());
  EXPECT_TRUE(proxy_.heads().empty());
}

TEST_F(HttpsPosterProxyTest, ThatRefusesIsSaidWithoutItsPassword) {
  test::ConnectProxy refusing(server_.port(), true);
  environment_["HTTPS_PROXY"] = "http://me:secret@127.0.0.1:" + std::to_string(refusing.port());
  const Result<Answer> answer = post(target(server_));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kTransient);
  EXPECT_NE(answer.error().message.find("through the proxy"), std::string::npos);
  EXPECT_NE(answer.error().message.find("407"), std::string::npos) << answer.error().message;
  EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
  EXPECT_EQ(server_.connections(), 0);
}

TEST_F(HttpsPosterProxyTest, WithoutDescriptorsForATunnelTheTryFails) {
  ASSERT_TRUE(post(target(server_)).ok());
  {
    const test::DescriptorLimit limit(3);
    const Result<Answer> failed = post(target(server_));
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kTransient);
  }
  EXPECT_TRUE(post(target(server_)).ok());
}

TEST_F(HttpsPosterProxyTest, OfAnUnknownKindIsAMistakeOfTheConfiguration) {
  environment_["HTTPS_PROXY"] = "ftp://me:secret@127.0.0.1";
  const Result<Answer> answer = post(target(server_));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  EXPECT_NE(answer.error().message.find("HTTPS_PROXY"), std::string::npos);
  EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
}

TEST_F(HttpsPosterTest, OfSeveralAddressesItUsesThoseThatAreAllowed) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  look_up_ = [](const std::string&) { return Result(Addresses{"169.254.169.254", "127.0.0.1"}); };
  EXPECT_TRUE(post(target(server_)).ok());
}

// Of the same port on 127.0.0.2: nobody takes its connections. The kernel begins so many and one
// more.
class DeafAddress {
 public:
  DeafAddress(int port, int waiting) : socket_(io_, tcp::v4()) {
    socket_.set_option(tcp::acceptor::reuse_address(true));
    endpoint_ = {boost::asio::ip::make_address("127.0.0.2"), static_cast<std::uint16_t>(port)};
    socket_.bind(endpoint_);
    socket_.listen(waiting);
  }
  // From now on a connection does not even begin: the kernel's queue is full.
  void fill() {
    filler_.open(tcp::v4());
    filler_.connect(endpoint_);
  }

 private:
  using tcp = boost::asio::ip::tcp;
  boost::asio::io_context io_;
  tcp::acceptor socket_;
  tcp::endpoint endpoint_;
  tcp::socket filler_{io_};
};

TEST_F(HttpsPosterTest, AnAddressThatHangsIsTriedLastTheNextTime) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  DeafAddress deaf(server_.port(), 8);
  look_up_ = [](const std::string&) { return Result(Addresses{"127.0.0.2", "127.0.0.1"}); };
  Target both = target(server_);
  both.allowed = {*parse_range("127.0.0.0/8")};
  timeout_ = std::chrono::milliseconds(1500);
  EXPECT_FALSE(post(both).ok()) << "it takes the connection and says nothing";
  EXPECT_TRUE(post(both).ok());
  EXPECT_TRUE(post(both).ok());
}

TEST_F(HttpsPosterTest, AnAddressThatCannotBeReachedLeavesTimeForTheNext) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  DeafAddress deaf(server_.port(), 0);
  deaf.fill();
  look_up_ = [](const std::string&) { return Result(Addresses{"127.0.0.2", "127.0.0.1"}); };
  Target both = target(server_);
  both.allowed = {*parse_range("127.0.0.0/8")};
  timeout_ = seconds(6);
  const Result<Answer> answer = post(both);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
}

TEST_F(HttpsPosterTest, ARedirectIsAnAnswerAndIsNotFollowed) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.respond(302, "", "Location: https://hooks.example.com/other\r\n");
  });
  const Result<Answer> answer = post(target(server_));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(HttpsPosterTest, RetryAfterIsReadAndTheBodyIsNot) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 99999999\r\n\r\n");
    exchange.wait_for_client_to_go();
  });
  const Result<Answer> answer = post(target(server_));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->retry_after, seconds(7));
}

TEST_F(HttpsPosterTest, AServerWithAnotherNameGetsNothing) {
  TlsServer other(ca_.issue("other", {"DNS:other.example.com"}));
  const Result<Answer> answer = post(target(other));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("certificate was refused"), std::string::npos)
      << answer.error().message;
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(HttpsPosterTest, AServerOfAnotherAuthorityGetsNothing) {
  TlsServer other(CertificateAuthority("other").issue("server", {"DNS:hooks.example.com"}));
  EXPECT_FALSE(post(target(other)).ok());
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(HttpsPosterTest, AServerThatHangsIsGivenUp) {
  timeout_ = std::chrono::milliseconds(300);
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  const Result<Answer> answer = post(target(server_));
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("in time"), std::string::npos) << answer.error().message;
}

TEST_F(HttpsPosterTest, AConnectionThatEndsWithoutAnAnswerIsAnError) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.drop(); });
  EXPECT_FALSE(post(target(server_)).ok());
}

TEST_F(HttpsPosterTest, AHeadWithoutEndIsAnError) {
  server_.handle([](TlsServer::Exchange& exchange) {
    exchange.write("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'));
    exchange.wait_for_client_to_go();
  });
  EXPECT_FALSE(post(target(server_)).ok());
}

TEST_F(HttpsPosterTest, ANameThatDoesNotResolveHoldsUpNoOtherTarget) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.respond(204, ""); });
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  look_up_ = [&](const std::string& host) {
    if (host == "slow.example.com") released.wait();
    return Result(Addresses{"127.0.0.1"});
  };
  ASSERT_TRUE(post(target(server_)).ok());
  Target slow = target(server_, "slow.example.com");
  slow.name = "slow";
  thread_.run([&] { poster_->post(slow, {}, [](const Result<Answer>&) {}); });
  EXPECT_TRUE(post(target(server_)).ok());
  release.set_value();
}

TEST_F(HttpsPosterTest, StopEndsWhatIsUnderWay) {
  server_.handle([](TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  thread_.run([&] {
    poster_ = std::make_unique<HttpsPoster>(thread_.loop(), ca_file_, look_up_, timeout_);
    poster_->post(target(server_), {}, [](const Result<Answer>&) { FAIL() << "it was dropped"; });
  });
  ASSERT_TRUE(test::eventually([&] { return server_.connections() == 1; }));
  thread_.run([&] { poster_->stop(); });
}

}  // namespace
}  // namespace holdfast::notify
