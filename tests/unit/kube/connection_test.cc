// A Connection against a real TLS server, from a kubeconfig on disk.
#include "client/kube/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "client/kube/base64.h"
#include "tests/support/certificates.h"
#include "tests/support/loop_thread.h"
#include "tests/support/tls_server.h"
#include "tests/unit/kube/temporary_folder.h"

namespace holdfast::kube {
namespace {

using test::eventually;
using testing::HasSubstr;

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    server_.handle([](test::TlsServer::Exchange& exchange) { exchange.respond(200, "{}"); });
    folder_.write("ca.pem", ca_.certificate());
  }
  ~ConnectionTest() override {
    loop_.run([this] {
      if (connection_) connection_->shut_down();
    });
    EXPECT_TRUE(eventually([this] { return unanswered_ == 0; }));
    loop_.run([this] { connection_.reset(); });
  }

  // Empty: connected.
  std::string connect(const std::string& user,
                      const std::string& cluster = "certificate-authority: ca.pem") {
    const std::string path = folder_.write(
        "config",
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: c, user: u, namespace: jobs}}]\n"
        "clusters: [{name: c, cluster: {server: '" +
            server_.url() + "', " + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n");
    return loop_.run([this, path]() -> std::string {
      ConnectOptions options;
      options.kubeconfig = path;
      options.user_agent = "test-agent";
      options.certificate_period = std::chrono::milliseconds(10);
      auto connection = Connection::connect({loop_.loop(), random_, Log(), {}}, options);
      if (!connection.ok()) return connection.error().message;
      connection_ = std::move(*connection);
      return "";
    });
  }

  std::future<std::string> begin_get() {
    auto promise = std::make_shared<std::promise<std::string>>();
    ++unanswered_;
    loop_.run([this, promise] { spawn(get(promise)); });
    return promise->get_future();
  }
  Task<void> get(std::shared_ptr<std::promise<std::string>> promise) {
    Task<Result<JsonDocument>> asking =
        connection_->client().get("/api/v1/x", {.timeout = test::kPatience});
    const Result<JsonDocument> answer = co_await asking;
    promise->set_value(answer.ok() ? "ok" : answer.error().message);
    --unanswered_;
  }
  std::string get() {
    auto answer = begin_get();
    if (answer.wait_for(2 * test::kPatience) != std::future_status::ready) return "no answer";
    return answer.get();
  }
  test::TlsServer::Request last_request() const {
    const auto requests = server_.requests();
    return requests.empty() ? test::TlsServer::Request{} : requests.back();
  }

  std::string exec_user(const std::string& script) {
    folder_.write_script("plugin", script);
    return "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}";
  }

  test::CertificateAuthority ca_{"cluster"};
  test::TlsServer server_{ca_.issue("server", {"IP:127.0.0.1"}), ca_.certificate()};
  test::TemporaryFolder folder_;
  test::LoopThread loop_;
  SeededRandom random_{1};
  std::unique_ptr<Connection> connection_;
  std::atomic<int> unanswered_{0};
};

TEST_F(ConnectionTest, ATokenGoesWithEveryRequest) {
  ASSERT_EQ(connect("token: abc"), "");
  EXPECT_EQ(get(), "ok");
  EXPECT_EQ(last_request().headers.at("authorization"), "Bearer abc");
  EXPECT_EQ(last_request().headers.at("user-agent"), "test-agent");
  EXPECT_EQ(connection_->server(), server_.url());
}

TEST_F(ConnectionTest, AnExecPluginThatMustAskIsRefusedWhereNobodyCanAnswer) {
  const std::string user = exec_user("exit 1");
  const std::string always = user.substr(0, user.size() - 1) + ", interactiveMode: Always}";
  EXPECT_THAT(connect(always), HasSubstr("that need no person"));
}

TEST_F(ConnectionTest, ATokenFileIsReadAnewWhenTheServerRefusesItsToken) {
  folder_.write("token", "old\n");
  ASSERT_EQ(connect("tokenFile: token"), "");
  EXPECT_EQ(get(), "ok");
  folder_.write("token", "new\n");
  server_.handle([](test::TlsServer::Exchange& exchange) {
    const bool renewed = exchange.request.headers["authorization"] == "Bearer new";
    exchange.respond(renewed ? 200 : 401, "{}");
  });
  EXPECT_EQ(get(), "ok");
}

TEST_F(ConnectionTest, AClientCertificateIsPresentedAndRenewedWhenItsFilesChange) {
  const test::KeyPair first = ca_.issue("first", {});
  folder_.write("cert.pem", first.certificate);
  folder_.write("key.pem", first.key);
  ASSERT_EQ(connect("client-certificate: cert.pem, client-key: key.pem"), "");
  EXPECT_EQ(get(), "ok");
  EXPECT_EQ(last_request().client_name, "first");
  const test::KeyPair second = ca_.issue("second", {});
  folder_.write("cert.pem", second.certificate);
  folder_.write("key.pem", second.key);
  EXPECT_TRUE(
      eventually([this] { return get() == "ok" && last_request().client_name == "second"; }));
}

TEST_F(ConnectionTest, ARenewedCaIsTrusted) {
  ASSERT_EQ(connect("token: abc"), "");
  EXPECT_EQ(get(), "ok");
  const test::CertificateAuthority next("next");
  folder_.write("ca.pem", next.certificate());
  server_.use_identity(next.issue("server", {"IP:127.0.0.1"}));
  EXPECT_TRUE(eventually([this] { return get() == "ok" && server_.connections() > 1; }));
}

TEST_F(ConnectionTest, AnExecPluginGivesTheToken) {
  ASSERT_EQ(connect(exec_user("echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", "
                              "\"kind\": \"ExecCredential\", \"status\": {\"token\": \"abc\"}}'")),
            "");
  EXPECT_EQ(get(), "ok");
  EXPECT_EQ(last_request().headers.at("authorization"), "Bearer abc");
}

TEST_F(ConnectionTest, AnExecPluginGivesTheClientCertificate) {
  const test::KeyPair pair = ca_.issue("from-plugin", {});
  folder_.write(
      "out",
      Json{{"apiVersion", "client.authentication.k8s.io/v1"},
           {"kind", "ExecCredential"},
           {"status", {{"clientCertificateData", pair.certificate}, {"clientKeyData", pair.key}}}}
          .dump());
  ASSERT_EQ(connect(exec_user("cat " + folder_.path() + "/out")), "");
  EXPECT_EQ(get(), "ok");
  EXPECT_EQ(last_request().client_name, "from-plugin");
  EXPECT_EQ(last_request().headers.count("authorization"), 0U);
}

TEST_F(ConnectionTest, ShutDownAnswersWhatWaitsForAnExecPlugin) {
  ASSERT_EQ(connect(exec_user("exec sleep 1000")), "");
  auto answer = begin_get();
  loop_.run([this] { connection_->shut_down(); });
  ASSERT_EQ(answer.wait_for(test::kPatience), std::future_status::ready);
  EXPECT_NE(answer.get(), "ok");
}

TEST_F(ConnectionTest, ShutDownAnswersWhatWaitsForTheServer) {
  server_.handle([](test::TlsServer::Exchange& exchange) { exchange.wait_for_client_to_go(); });
  ASSERT_EQ(connect("token: abc"), "");
  auto answer = begin_get();
  ASSERT_TRUE(eventually([this] { return !server_.requests().empty(); }));
  loop_.run([this] { connection_->shut_down(); });
  ASSERT_EQ(answer.wait_for(test::kPatience), std::future_status::ready);
  EXPECT_NE(answer.get(), "ok");
}

TEST_F(ConnectionTest, WhatCannotWorkIsRefusedWithItsPlace) {
  EXPECT_THAT(connect("token: 'hunter2 x'"), HasSubstr("something that is not a token"));
  EXPECT_THAT(connect("token: abc", "certificate-authority: none.pem"), HasSubstr("none.pem"));
  EXPECT_THAT(connect("token: abc", "certificate-authority-data: " + base64_encode("no PEM")),
              HasSubstr("context \"a\""));
  EXPECT_THAT(connect("token: abc", "proxy-url: 'socks4://user:hunter2@proxy:1080'"),
              testing::AllOf(HasSubstr("socks4"), testing::Not(HasSubstr("hunter2"))));
}

}  // namespace
}  // namespace holdfast::kube
