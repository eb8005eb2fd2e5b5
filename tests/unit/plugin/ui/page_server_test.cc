// The page's server on a real socket: its files, its streams, its limits.
#include "plugin/ui/page_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/situations.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A connection of one request.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Until the text has it, or the server closes.
  std::string read_until(const std::string& what) {
    char buffer[4096];
    while (text_.find(what) == std::string::npos) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text_.append(buffer, static_cast<std::size_t>(got));
    }
    return text_;
  }
  std::string read_all() { return read_until("\x01"); }

 private:
  const int socket_;
  std::string text_;
};

class UiServer : public ::testing::Test {
 protected:
  UiServer() {
    api_.time = noon();
    Json job = situation("back-off").facts.job;
    job["metadata"]["name"] = "film-17";
    job["metadata"]["namespace"] = "media";
    job["metadata"]["resourceVersion"] = "7";
    api_.objects[test::MemoryApi::key(kJobs, "media", "film-17")] = job;
    const Result<std::string> address = page_.start(0);
    EXPECT_TRUE(address.ok());
    const std::size_t port = address->find_last_of(':') + 1;
    port_ = static_cast<std::uint16_t>(std::stoi(address->substr(port)));
    token_ = address->substr(address->find("token=") + 6);
  }

  std::string head(const std::string& what, const std::string& more = "") const {
    return what + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
           "\r\nConnection: close\r\n" + more + "\r\n";
  }
  std::string with_token() const { return "Authorization: Bearer " + token_ + "\r\n"; }
  std::string ask(const std::string& request) const {
    Connection connection(port_);
    connection.send(request);
    return connection.read_all();
  }

  test::MemoryApi api_;
  PageServer page_{api_, {"media", "", {{"/", "text/html", "zipped"}}}};
  std::uint16_t port_ = 0;
  std::string token_;
};

TEST_F(UiServer, ServesItsFilesWithAPolicyThatRunsNothingElse) {
  const std::string answer = ask(head("GET /"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(answer, HasSubstr("Content-Encoding: gzip"));
  EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie")));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
}

TEST_F(UiServer, AnswersNoCallWithoutTheToken) {
  for (const char* const call :
       {"GET /api/events?screen=jobs", "GET /api/log?ns=media&name=film-17",
        "GET /api/yaml?ns=media&name=film-17", "POST /api/action", "GET /api/rights?ns=media",
        "GET /api/anything"}) {
    EXPECT_THAT(ask(head(call)), StartsWith("HTTP/1.1 401")) << call;
  }
}

TEST_F(UiServer, HasAFixedListOfRoutes) {
  for (const char* const path :
       {"GET /api/", "GET /api/v1/pods", "GET /apis/holdfast.dev/v1alpha1/durablejobs",
        "GET /../etc/passwd", "GET /app.map"}) {
    EXPECT_THAT(ask(head(path, with_token())), StartsWith("HTTP/1.1 404")) << path;
  }
  EXPECT_THAT(ask(head("DELETE /api/action", with_token())), StartsWith("HTTP/1.1 405"));
}

TEST_F(UiServer, StreamsScreens) {
  for (const auto& [query, text] :
       {std::pair{"screen=jobs&filter=film", R"("matching":1)"},
        {"screen=jobs&filter=other", R"("matching":0)"},
        {"screen=needs", R"("causes":[)"},
        {"screen=job&ns=media&name=film-17", R"("kind":"Explanation")"},
        {"screen=job&ns=media&name=gone", "there is no DurableJob gone"},
        {"screen=queues", R"("queues":[])"},
        {"screen=pools", R"("pools":[])"},
        {"screen=operator", R"("lamps":[)"}}) {
    Connection connection(port_);
    connection.send(head("GET /api/events?" + std::string(query), with_token()));
    const std::string answer = connection.read_until(text);
    EXPECT_THAT(answer, HasSubstr("text/event-stream")) << query;
    EXPECT_THAT(answer, HasSubstr(text)) << query;
  }
}

TEST_F(UiServer, SaysWhatIsWrongWithAQuery) {
  EXPECT_THAT(ask(head("GET /api/events?screen=jobs&filter=phse:x", with_token())),
              HasSubstr("phse:x"));
  EXPECT_THAT(ask(head("GET /api/events?screen=other", with_token())), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(head("GET /api/yaml?ns=media&name=--kubeconfig=x", with_token())),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(UiServer, LimitsHeadersAndBodies) {
  const std::string big(300'000, 'x');
  EXPECT_THAT(ask(head("GET /", "X: " + big + "\r\n")), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask(head("POST /api/action",
                       with_token() + "Content-Length: " + std::to_string(big.size()) + "\r\n") +
                  big),
              StartsWith("HTTP/1.1 413"));
}

TEST_F(UiServer, ActsAndAsksFirst) {
  const std::string uid = string_at(at(api_.objects.begin()->second, "metadata"), "uid");
  const std::string body =
      Json{{"verb", "cancel"}, {"jobs", {{{"ns", "media"}, {"name", "film-17"}, {"uid", uid}}}}}
          .dump();
  const std::string more = with_token() + "Content-Length: " + std::to_string(body.size()) + "\r\n";
  EXPECT_THAT(ask(head("POST /api/action?ask=true", more) + body),
              HasSubstr("kubectl holdfast cancel film-17 -n media"));
  EXPECT_FALSE(api_.objects.begin()->second["spec"].contains("cancel"));
  EXPECT_THAT(ask(head("POST /api/action", more) + body), HasSubstr(R"("ok":true)"));
  EXPECT_EQ(api_.objects.begin()->second["spec"]["cancel"], true);
}

// Strangers that open connections lock nobody out.
TEST_F(UiServer, AnswersBesideVeryManyOpenConnections) {
  std::vector<std::unique_ptr<Connection>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<Connection>(port_));
  EXPECT_THAT(ask(head("GET /")), StartsWith("HTTP/1.1 200"));
}

TEST(UiQueries, AreDecoded) {
  const auto query = parse_query("a=b%20c&d=%3Ce%3E&f=1+2&g&bad=%zz&%ff=x&=y");
  EXPECT_EQ(query.at("a"), "b c");
  EXPECT_EQ(query.at("d"), "<e>");
  EXPECT_EQ(query.at("f"), "1 2");
  EXPECT_EQ(query.at("g"), "");
  EXPECT_EQ(query.size(), 4U);
}

}  // namespace
}  // namespace holdfast::plugin
