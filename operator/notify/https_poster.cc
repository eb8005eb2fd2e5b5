#include "operator/notify/https_poster.h"

#include <netdb.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "client/http/endpoint.h"
#include "operator/notify/address_memory.h"
#include "operator/notify/https_try.h"

namespace holdfast::notify {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kCaBytes = std::size_t{1} << 20;
constexpr std::size_t kAddressLimit = 16;

Result<std::vector<std::string>> look_up_by_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0) {
    return make_error(ErrorCode::kTransient,
                      std::string("its name ") + host + " has no address: " + gai_strerror(failed));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr && addresses.size() < kAddressLimit;
       one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  freeaddrinfo(found);
  return addresses;
}

// Those that the target may have. kForbidden: none of them.
Result<std::vector<std::string>> usable(const std::vector<std::string>& addresses,
                                        const Target& target) {
  std::vector<std::string> usable;
  for (const std::string& text : addresses) {
    const Result<Address> address = parse_address(text);
    if (address.ok() && may_connect(*address, target.allowed)) usable.push_back(text);
  }
  if (!usable.empty()) return usable;
  const std::string first = addresses.empty() ? "no address" : addresses.front();
  return make_error(ErrorCode::kForbidden,
                    "its name " + target.host + " leads to " + first +
                        ", which is not on the public internet: if that is right, add its range to "
                        "allowedCIDRs of the target");
}

}  // namespace

// Its thread runs until stop().
class HttpsPoster::Worker {
 public:
  explicit Worker(Target target) : target_(std::move(target)) {
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Worker() {
    io_.stop();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Message message, const HttpsPoster& poster, Done done) {
    const SteadyTime now = poster.loop_.now();
    asio::post(io_, [this, message = std::move(message), &poster, done = std::move(done),
                     now]() mutable { begin(std::move(message), poster, done, now); });
  }

 private:
  void begin(Message message, const HttpsPoster& poster, const Done& done, SteadyTime now) {
    TrySettings settings;
    settings.host = target_.host;
    settings.port = target_.port;
    settings.path = target_.path;
    settings.timeout = poster.timeout_;
    if (!target_.ca_file.empty()) {
      const Result<std::string> ca = poster.files_.read(target_.ca_file, kCaBytes);
      if (!ca.ok()) {
        return done(make_error(ErrorCode::kInvalid,
                               "its authorities cannot be read: " + ca.error().message));
      }
      settings.ca = *ca;
    }
    const Result<std::vector<std::string>> addresses = http::is_ip_literal(target_.host)
                                                           ? Result(std::vector{target_.host})
                                                           : poster.look_up_(target_.host);
    if (!addresses.ok()) return done(addresses.error());
    Result<std::vector<std::string>> allowed = usable(*addresses, target_);
    if (!allowed.ok()) return done(allowed.error());
    http::Endpoint endpoint;
    endpoint.host = target_.host;
    endpoint.port = target_.port;
    const std::string url = http::proxy_from_environment(endpoint, poster.environment_);
    if (!url.empty()) {
      Result<http::Proxy> proxy = http::parse_proxy(url);
      if (!proxy.ok()) {
        return done(make_error(ErrorCode::kInvalid, "the proxy of HTTPS_PROXY cannot be used: " +
                                                        proxy.error().message));
      }
      settings.proxy = std::move(*proxy);
    }
    settings.addresses = addresses_.in_order(std::move(*allowed), now);
    settings.report = [this, now](const std::string& address, bool worked) {
      worked ? addresses_.worked(address) : addresses_.failed(address, now);
    };
    begin_try(io_, std::move(settings), std::move(message), done);
  }

  const Target target_;
  AddressMemory addresses_;  // the thread's
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> stays_{io_.get_executor()};
  std::thread thread_;
};

HttpsPoster::HttpsPoster(Loop& loop, const FileReader& files, LookUp look_up, Duration timeout,
                         http::Environment environment)
    : loop_(loop),
      files_(files),
      look_up_(look_up ? std::move(look_up) : look_up_by_system),
      timeout_(timeout),
      environment_(std::move(environment)) {}

HttpsPoster::~HttpsPoster() { stop(); }

void HttpsPoster::stop() { workers_.clear(); }

void HttpsPoster::post(const Target& target, Message message, Done done) {
  std::unique_ptr<Worker>& worker = workers_[target.name];
  if (!worker) {
    // Without descriptors or threads it cannot be made. The next try makes it.
    try {
      worker = std::make_unique<Worker>(target);
    } catch (const std::exception& exception) {
      const std::string why = std::string("this try cannot begin: ") + exception.what();
      return loop_.post(
          [done = std::move(done), why] { done(make_error(ErrorCode::kTransient, why)); });
    }
  }
  worker->post(std::move(message), *this, [this, done = std::move(done)](Result<Answer> answer) {
    loop_.post([done, answer = std::move(answer)] { done(answer); });
  });
}

}  // namespace holdfast::notify
