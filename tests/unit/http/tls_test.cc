#include "client/http/tls.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/http/transport_fixture.h"

namespace holdfast::http {
namespace {

using test::KeyPair;

class TlsTest : public TransportTest {
 protected:
  // Asks a server with this certificate.
  Result<Response> ask(const KeyPair& identity, const TlsConfig& tls,
                       const std::string& host = "127.0.0.1") {
    TlsServer server(identity);
    auto asked = config();
    asked.base_url = server.url(host);
    asked.tls = tls;
    make(asked);
    Result<Response> response = send(get_request("/"));
    seen_ = server.requests();
    destroy();
    return response;
  }
  // Each of `words` stands in the message.
  void expect_refused(const Result<Response>& response,
                      const std::vector<std::string>& words = {}) {
    ASSERT_FALSE(response.ok());
    for (const std::string& word : words) {
      EXPECT_THAT(response.error().message, testing::HasSubstr(word));
    }
    EXPECT_EQ(response.error().code, ErrorCode::kTransient);
    EXPECT_FALSE(response.error().maybe_applied) << "nothing is sent before the handshake";
    EXPECT_TRUE(seen_.empty());
  }
  TlsConfig trusting(const CertificateAuthority& ca) const {
    TlsConfig tls;
    tls.ca = ca.certificate();
    return tls;
  }

  CertificateAuthority other_ca_{"other"};
  std::vector<TlsServer::Request> seen_;
};

TEST_F(TlsTest, AServerOfAnotherCaIsRefused) {
  expect_refused(ask(other_ca_.issue("server", {"IP:127.0.0.1"}), trusting(ca_)));
}

TEST_F(TlsTest, TheSystemsCasAreNotTrustedBesideTheClusters) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("holdfast-ca-" + std::to_string(getpid()));
  std::ofstream(path) << other_ca_.certificate();
  setenv("SSL_CERT_FILE", path.c_str(), 1);
  const KeyPair identity = other_ca_.issue("server", {"IP:127.0.0.1"});
  EXPECT_TRUE(ask(identity, TlsConfig{}).ok()) << "without a CA of its own the system's count";
  expect_refused(ask(identity, trusting(ca_)));
  unsetenv("SSL_CERT_FILE");
  std::filesystem::remove(path);
}

TEST_F(TlsTest, SeveralCasAreTrustedTogether) {
  TlsConfig both = trusting(ca_);
  both.ca += other_ca_.certificate();
  EXPECT_TRUE(ask(ca_.issue("server", {"IP:127.0.0.1"}), both).ok());
  EXPECT_TRUE(ask(other_ca_.issue("server", {"IP:127.0.0.1"}), both).ok());
}

TEST_F(TlsTest, ACertificateForAnotherAddressIsRefused) {
  expect_refused(ask(ca_.issue("server", {"IP:127.0.0.2"}), trusting(ca_)));
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRefused) {
  expect_refused(ask(ca_.issue("server", {"DNS:elsewhere"}), trusting(ca_), "localhost"));
}

TEST_F(TlsTest, TheCommonNameDoesNotCount) {
  expect_refused(ask(ca_.issue("localhost", {}), trusting(ca_), "localhost"));
}

TEST_F(TlsTest, ANameIsSentAsServerNameAndAnAddressIsNot) {
  const KeyPair identity = ca_.issue("server", {"IP:127.0.0.1", "DNS:localhost"});
  ASSERT_TRUE(ask(identity, trusting(ca_), "localhost").ok());
  EXPECT_EQ(seen_.at(0).server_name, "localhost");
  ASSERT_TRUE(ask(identity, trusting(ca_)).ok());
  EXPECT_EQ(seen_.at(0).server_name, "");
}

TEST_F(TlsTest, TlsServerNameReplacesTheUrlsHostForSniAndVerification) {
  TlsConfig tls = trusting(ca_);
  tls.server_name = "kubernetes.default.svc";
  ASSERT_TRUE(ask(ca_.issue("server", {"DNS:kubernetes.default.svc"}), tls).ok());
  EXPECT_EQ(seen_.at(0).server_name, "kubernetes.default.svc");
  expect_refused(ask(ca_.issue("server", {"IP:127.0.0.1"}), tls));
}

TEST_F(TlsTest, WildcardCertificatesMatchOneLabel) {
  const KeyPair identity = ca_.issue("server", {"DNS:*.example.com"});
  TlsConfig tls = trusting(ca_);
  tls.server_name = "api.example.com";
  EXPECT_TRUE(ask(identity, tls).ok());
  tls.server_name = "a.b.example.com";
  expect_refused(ask(identity, tls));
}

TEST_F(TlsTest, ARefusalOfTheIssuerNamesItAndTheFieldThatMendsIt) {
  expect_refused(ask(other_ca_.issue("server", {"IP:127.0.0.1"}), trusting(ca_)),
                 {"the server's certificate is refused", "not signed by a CA that is trusted here",
                  "issuer \"CN=other\"", "certificate-authority-data"});
}

TEST_F(TlsTest, ARefusalOfTheNameListsTheCertificatesAndTheFieldThatMendsIt) {
  const KeyPair identity = ca_.issue("server", {"IP:127.0.0.2", "DNS:elsewhere"});
  const std::vector<std::string> advice = {"only IP Address:127.0.0.2, DNS:elsewhere",
                                           "tls-server-name"};
  expect_refused(ask(identity, trusting(ca_)), {"no name for \"127.0.0.1\"", advice[0], advice[1]});
  expect_refused(ask(identity, trusting(ca_), "localhost"),
                 {"no name for \"localhost\"", advice[0], advice[1]});
  TlsConfig renamed = trusting(ca_);
  renamed.server_name = "kubernetes";
  expect_refused(ask(identity, renamed), {"no name for \"kubernetes\"", advice[0]});
  expect_refused(ask(ca_.issue("localhost", {}), trusting(ca_), "localhost"),
                 {"no subject alternative names"});
}

TEST_F(TlsTest, ARefusalListsNoMoreNamesThanFitALine) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("DNS:name-" + std::to_string(i) + ".example.com");
  const Result<Response> response = ask(ca_.issue("server", names), trusting(ca_));
  expect_refused(response, {"name-0.example.com", "..."});
  EXPECT_LT(response.error().message.size(), 600u);
}

TEST_F(TlsTest, ARefusalOfTheTimeSaysWhichEndAndWhatToDo) {
  using std::chrono::hours;
  expect_refused(ask(ca_.issue("server", {"IP:127.0.0.1"}, {hours(-2), hours(-1)}), trusting(ca_)),
                 {"it expired on", "renew it", "clock"});
  expect_refused(ask(ca_.issue("server", {"IP:127.0.0.1"}, {hours(1), hours(2)}), trusting(ca_)),
                 {"it is not valid before", "clock"});
}

TEST_F(TlsTest, AStreamsRefusalSaysWhyAsWell) {
  TlsServer server(other_ca_.issue("server", {"IP:127.0.0.1"}));
  auto asked = config();
  asked.base_url = server.url();
  make(asked);
  StreamLog stream;
  StreamRequest watch;
  watch.target = "/watch";
  open(std::move(watch), stream);
  ASSERT_TRUE(eventually([&] { return stream.ended(); }));
  EXPECT_THAT(stream.error()->message, testing::HasSubstr("not signed by a CA"));
  destroy();
}

TEST_F(TlsTest, AServerWithoutTlsIsReportedByWhatOpenSslFound) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::thread plain([listener] {
    const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const int client = accept(listener, nullptr, nullptr);
    EXPECT_EQ(write(client, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    char byte;
    while (read(client, &byte, 1) > 0) continue;
    close(client);
  });
  auto asked = config();
  asked.base_url = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  make(asked);
  expect_refused(send(get_request("/")), {"handshake", "wrong version number"});
  destroy();
  plain.join();
  close(listener);
}

TEST_F(TlsTest, InsecureSkipVerifyTakesAnyCertificate) {
  TlsConfig tls;
  tls.insecure_skip_verify = true;
  EXPECT_TRUE(ask(other_ca_.issue("server", {"DNS:elsewhere"}), tls).ok());
}

class ClientCertificateTest : public TransportTest {
 protected:
  TlsConfig as(const std::string& name) {
    const KeyPair identity = ca_.issue(name, {});
    TlsConfig tls;
    tls.ca = ca_.certificate();
    tls.client_certificate = identity.certificate;
    tls.client_key = identity.key;
    return tls;
  }
  void make_as(const std::string& name) {
    auto client = config();
    client.base_url = asking_.url();
    client.tls = as(name);
    make(client);
  }

  TlsServer asking_{ca_.issue("server", {"IP:127.0.0.1"}), ca_.certificate()};
};

TEST_F(ClientCertificateTest, IsPresented) {
  make_as("first");
  ASSERT_TRUE(send(get_request("/")).ok());
  EXPECT_EQ(asking_.requests().at(0).client_name, "first");
}

TEST_F(ClientCertificateTest, ANewOneIsUsedAtOnceAndOldConnectionsAreNot) {
  make_as("first");
  ASSERT_TRUE(send(get_request("/one")).ok());
  loop_.run([this] { EXPECT_TRUE(transport_->set_tls(as("second")).ok()); });
  ASSERT_TRUE(send(get_request("/two")).ok());
  EXPECT_EQ(asking_.requests().at(1).client_name, "second");
  EXPECT_EQ(asking_.requests().at(1).connection, 2);
  EXPECT_TRUE(eventually([this] { return asking_.open_connections() == 1; }))
      << "the kept connection of the old certificate is closed";
}

TEST_F(ClientCertificateTest, ANewOneLetsRequestsInFlightEndAndStreamsOpenAnew) {
  make_as("first");
  std::promise<void> go;
  auto may_go = go.get_future().share();
  asking_.handle([may_go](TlsServer::Exchange& exchange) {
    if (exchange.request.target == "/watch") {
      exchange.begin_chunked();
      exchange.chunk("one\n");
      return exchange.wait_for_client_to_go();
    }
    may_go.wait_for(kPatience);
    exchange.respond(200, "{}");
  });
  StreamLog stream;
  StreamRequest watch;
  watch.target = "/watch";
  open(std::move(watch), stream);
  auto answer = begin(get_request("/slow"));
  ASSERT_TRUE(eventually([&] { return stream.line_count() == 1; }));
  ASSERT_TRUE(eventually([&] { return asking_.requests().size() == 2; }));
  loop_.run([this] { EXPECT_TRUE(transport_->set_tls(as("second")).ok()); });
  ASSERT_TRUE(eventually([&] { return stream.ended(); }));
  EXPECT_EQ(stream.error()->code, ErrorCode::kTransient);
  go.set_value();
  EXPECT_TRUE(get(answer).ok());
}

TEST_F(ClientCertificateTest, UnusableMaterialIsRefusedAndChangesNothing) {
  make_as("first");
  TlsConfig mixed = as("second");
  mixed.client_key = as("third").client_key;
  loop_.run([&] {
    const Result<> refused = transport_->set_tls(mixed);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message, "the client key does not belong to the client certificate");
  });
  ASSERT_TRUE(send(get_request("/")).ok());
  EXPECT_EQ(asking_.requests().at(0).client_name, "first");
}

TEST(ValidateTls, SaysWhichPartIsWrongAndShowsNoneOfIt) {
  const CertificateAuthority ca("ca");
  const KeyPair pair = ca.issue("client", {});
  const auto message = [](const std::string& authority, const std::string& certificate,
                          const std::string& key) {
    TlsConfig tls;
    tls.ca = authority;
    tls.client_certificate = certificate;
    tls.client_key = key;
    const Result<> status = validate_tls(tls);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message(ca.certificate(), pair.certificate, pair.key), "");
  EXPECT_EQ(message("", "", ""), "");
  EXPECT_EQ(message("secret", "", ""), "the CA is not a list of PEM certificates");
  EXPECT_EQ(message(ca.certificate() + "-----BEGIN CERTIFICATE-----\nsecret\n", "", ""),
            "the CA is not a list of PEM certificates");
  EXPECT_EQ(message("", pair.certificate, ""),
            "a client certificate and its key must come together");
  EXPECT_EQ(message("", "secret", pair.key), "the client certificate is not a PEM certificate");
  EXPECT_EQ(message("", pair.certificate, "secret"),
            "the client key is not a PEM private key without a password");
}

}  // namespace
}  // namespace holdfast::http
