// SPDX-License-Identifier: Apache-2.0
// Fields after a chunked body are not the request's header, whatever they are called.
#include "unit/http/bcrypt_hash.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

class ServerTrailer : public ServerTest {
 protected:
  // header: from the second line on. In one piece, and byte by byte.
  std::vector<ClientResponse> ask(const std::string& header, const std::string& trailer) {
    const std::string request =
        "GET /metrics HTTP/1.1\r\n" + header + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + trailer + "\r\n";
    std::vector<ClientResponse> responses;
    for (const size_t piece : {request.size(), size_t{1}}) {
      TestClient client(address());
      for (size_t at = 0; at < request.size(); at += piece) EXPECT_TRUE(client.send(request.substr(at, piece)));
      responses.push_back(client.read());
      if (responses.back().status == 200) { EXPECT_EQ(client.get("/healthz").status, last_); }
    }
    return responses;
  }

  int last_ = 200;  // what the next request on the connection gets
};

TEST_F(ServerTrailer, HasNoPassword) {
  options_.web_config_file = directory_.write("web.yml", "basic_auth_users:\n  alice: " + bcrypt_hash("secret") + "\n");
  start();
  last_ = 401;
  const std::string alice = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
  for (const auto& response : ask("Host: x\r\n", alice)) EXPECT_EQ(response.status, 401);
  for (const auto& response : ask("Host: x\r\n" + alice, "")) EXPECT_EQ(response.status, 200);
  for (const auto& response : ask("Host: x\r\n" + alice, "Authorization: Basic bm8=\r\n"))
    EXPECT_EQ(response.status, 200) << "nor does it spoil the one in the header";
}

TEST_F(ServerTrailer, HasNoHost) {
  start();
  for (const auto& response : ask("", "Host: x\r\n")) EXPECT_EQ(response.status, 400);
  for (const auto& response : ask("Host: x\r\n", "Host: y\r\n")) EXPECT_EQ(response.status, 200);
  for (const auto& response : ask("Host: strange.example\r\nAccept-Language: en\r\n", "Host: localhost\r\n"))
    EXPECT_EQ(response.status, 403);
  for (const char* field : {"Accept-Language: en\r\n", "Origin: http://a.example\r\n", "Sec-Fetch-Mode: cors\r\n"})
    for (const auto& response : ask("Host: strange.example\r\n", field)) EXPECT_EQ(response.status, 200) << field;
}

TEST_F(ServerTrailer, HasNoWishes) {
  start();
  for (const auto& response : ask("Host: x\r\n",
                                  "Accept: application/openmetrics-text\r\nAccept-Encoding: gzip\r\n"
                                  "Connection: close\r\nExpect: nothing\r\n")) {
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.at("content-type").substr(0, 10), "text/plain");
    EXPECT_EQ(response.headers.count("content-encoding"), 0u);
    EXPECT_EQ(response.body, cell_.load()->text.get());
  }
}

TEST_F(ServerTrailer, HasNoLength) {
  start();
  for (const char* field : {"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n"}) {
    TestClient client(address());
    ASSERT_TRUE(client.send(std::string("GET /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n") +
                            field + "\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
    const int first = client.read().status;
    EXPECT_TRUE(first == 404 || first == 400) << field;
    EXPECT_EQ(client.read().status, first == 404 ? 200 : 0) << field << ": the next request, or a closed connection";
  }
}

}  // namespace
}  // namespace gpuledger::http
