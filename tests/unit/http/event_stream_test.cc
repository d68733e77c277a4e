// GET /api/v1/events, over a real socket.
#include "server/http/event_stream.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/http/http_client.h"

namespace normlab::http {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::WatchRunsResponse PointsAt(int64_t step) {
  v1::WatchRunsResponse event;
  event.mutable_points()->set_run("R");
  event.mutable_points()->set_attempt(1);
  v1::Column& column = *event.mutable_points()->add_columns();
  column.set_name("loss");
  column.add_steps(step);
  column.add_values(0.5);
  return event;
}

std::string FrameAt(int64_t step, const std::string& token = "") {
  return (token.empty() ? "" : "id: " + token + "\n") +
         fmt::format(
             "event: points\ndata: {{\"run\":\"R\",\"attempt\":1,\"columns\":{{\"loss\":"
             "{{\"steps\":[{}],\"values\":[0.5]}}}}}}\n\n",
             step);
}

class EventStreamTest : public HttpTest {
 protected:
  std::unique_ptr<HttpClient> Open(std::string_view query = "", std::string_view headers = "") {
    auto client = std::make_unique<HttpClient>(port());
    client->Send(Text("GET", fmt::format("/api/v1/events{}", query), "", headers));
    head_ = client->ReadHead();
    return client;
  }
  Response head_;  // of the stream opened last
};

TEST_F(EventStreamTest, SendsHistoryThenLiveEventsThenEnds) {
  api_.feed()->Push(PointsAt(1));
  auto client = Open("?runs=R");
  EXPECT_EQ(head_.status, 200);
  EXPECT_EQ(head_.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(head_.headers.at("cache-control"), "no-store");
  EXPECT_EQ(head_.headers.at("x-accel-buffering"), "no");
  EXPECT_EQ(client->ReadChunk(), FrameAt(1));
  api_.feed()->AwaitReader();
  api_.feed()->Push(PointsAt(2), "store-1:17");
  EXPECT_EQ(client->ReadChunk(), FrameAt(2, "store-1:17"));
  v1::WatchRunsResponse end;
  end.mutable_end()->mutable_run()->set_id("R");
  api_.feed()->Push(end);
  api_.feed()->Finish();
  EXPECT_THAT(client->ReadChunksUntil("event: end"), HasSubstr("event: end\ndata: {\"run\":{"));
  EXPECT_EQ(client->ReadChunk(), "");
  EXPECT_TRUE(client->AwaitClose());
  api_.feed()->AwaitWatches(0);
}

TEST_F(EventStreamTest, AsksForWhatTheAddressSays) {
  v1::WatchRunsRequest seen;
  api_.watch_runs = [&](const v1::WatchRunsRequest& request) {
    seen = request;
    return absl::OkStatus();
  };
  Open("?runs=a,b&experiment=E&all=true&from=7&tail=true&resume=old");
  EXPECT_THAT(seen.runs(), ElementsAre("a", "b"));
  EXPECT_EQ(seen.experiment(), "E");
  EXPECT_TRUE(seen.all());
  EXPECT_TRUE(seen.tail());
  EXPECT_EQ(seen.from_step(), 7);
  EXPECT_EQ(seen.resume_token(), "old");
  Open("?resume=old", "Last-Event-ID: newer\r\n");
  EXPECT_EQ(seen.resume_token(), "newer");
}

TEST_F(EventStreamTest, AWatchThatCannotBeginIsAnOrdinaryError) {
  api_.watch_runs = [](const v1::WatchRunsRequest&) {
    return absl::OutOfRangeError("the token is of another store");
  };
  const Response response = Get("/api/v1/events?resume=foreign");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.json()["error"]["status"], "OUT_OF_RANGE");
  EXPECT_EQ(Get("/api/v1/events?run=R").status, 400);
}

TEST_F(EventStreamTest, AWatchThatBreaksSaysSoAndEnds) {
  auto client = Open();
  api_.feed()->Break(absl::InternalError("the disk is gone"));
  EXPECT_EQ(client->ReadChunk(),
            "event: error\ndata: {\"error\":{\"code\":500,\"status\":\"INTERNAL\","
            "\"message\":\"the disk is gone\"}}\n\n");
  EXPECT_EQ(client->ReadChunk(), "");
}

TEST_F(EventStreamTest, ManyEventsArriveCompleteAndInOrder) {
  constexpr int kEvents = 20000;
  std::thread producer([this] {
    for (int i = 0; i < kEvents; ++i) api_.feed()->Push(PointsAt(i));
    api_.feed()->Finish();
  });
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Open());
  std::string expected;
  for (int i = 0; i < kEvents; ++i) expected += FrameAt(i);
  for (const auto& client : clients) EXPECT_TRUE(client->ReadChunksUntil("\n\n\n") == expected);
  producer.join();
}

TEST_F(EventStreamTest, ASlowReaderLosesNothing) {
  // Far more than the sockets' buffers hold, before a byte of it is read.
  std::string expected;
  auto client = Open();
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, static_cast<char>('a' + i % 26)));
    api_.feed()->Push(event);
  }
  api_.feed()->Finish();
  std::string text = client->ReadChunksUntil("\n\n\n");
  size_t frames = 0;
  for (size_t at = 0; (at = text.find("\n\n", at)) != std::string::npos; at += 2) ++frames;
  EXPECT_EQ(frames, 200u);
  EXPECT_GT(text.size(), 20000000u);
}

TEST_F(EventStreamTest, AnIdleStreamSaysHeartbeat) {
  options_.heartbeat = std::chrono::milliseconds(5);
  auto client = Open();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client->ReadChunk(), "event: heartbeat\ndata: {}\n\n");
  api_.feed()->Push(PointsAt(1));
  EXPECT_THAT(client->ReadChunksUntil("points"), HasSubstr(FrameAt(1)));
}

TEST_F(EventStreamTest, AClientThatGoesIsNoticedAtOnce) {
  auto client = Open();
  auto other = Open();
  api_.feed()->AwaitWatches(2);
  client->Close();
  api_.feed()->AwaitWatches(1);  // with no event and no heartbeat to write
  api_.feed()->Push(PointsAt(1));
  EXPECT_EQ(other->ReadChunk(), FrameAt(1));
}

TEST_F(EventStreamTest, AClientThatGoesMidStreamIsForgotten) {
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  auto client = Open();
  client->ReadChunk();
  client->Close();
  api_.feed()->AwaitWatches(0);
}

TEST_F(EventStreamTest, AClientThatReadsNothingIsLetGo) {
  options_.stall_timeout = std::chrono::milliseconds(50);
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  auto client = Open();
  api_.feed()->AwaitWatches(1);
  api_.feed()->AwaitWatches(0);
  EXPECT_EQ(api_.stalled, 1);
}

TEST_F(EventStreamTest, AClientThatReadsAgainFindsWholeEventsAndIsToldThatItWasLetGo) {
  options_.stall_timeout = std::chrono::milliseconds(500);
  constexpr size_t kEvents = 200;
  const std::string name(100000, 'x');
  for (size_t i = 0; i < kEvents; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(name);
    api_.feed()->Push(event);
  }
  auto client = Open();
  api_.feed()->AwaitWatches(1);
  api_.feed()->AwaitWatches(0);
  const std::string text = client->ReadChunksUntil("event: error");
  EXPECT_EQ(text.substr(text.rfind("event:"), 12), "event: error");
  EXPECT_THAT(text.substr(text.rfind("event:")),
              AllOf(HasSubstr("ABORTED"), HasSubstr("come back with the latest id")));
  EXPECT_EQ(client->ReadChunk(), "");
  EXPECT_TRUE(client->AwaitClose());
  size_t whole = 0;
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + name.size())) {
    EXPECT_EQ(text[at + name.size()], '"');
    ++whole;
  }
  EXPECT_GT(whole, 0u);
  EXPECT_LT(whole, kEvents) << "nothing more was sent";
  EXPECT_EQ(api_.stalled, 1);
}

TEST_F(EventStreamTest, AClientThatNeverReadsLosesItsConnectionInTheEnd) {
  options_.stall_timeout = std::chrono::milliseconds(20);
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  port();
  const auto before = open_files();
  auto stalled = Open();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (open_files() > before + 1 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(open_files(), before + 1) << "its own";
  EXPECT_EQ(api_.stalled, 1);
}

TEST_F(EventStreamTest, AReaderThatTakesALittleNowAndThenIsNotStalled) {
  options_.stall_timeout = std::chrono::milliseconds(2000);
  options_.stall_bytes = 4096;
  for (int i = 0; i < 20; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  api_.feed()->Finish();
  auto client = Open();
  std::string text;
  while (text.find("\n\n\n") == std::string::npos) {
    const std::string chunk = client->ReadChunk();
    if (chunk.empty()) break;
    text += chunk;
  }
  EXPECT_GT(text.size(), 2000000u);
  EXPECT_EQ(api_.stalled, 0);
}

TEST_F(EventStreamTest, OneThatReadsNothingDoesNotHoldUpAnother) {
  auto stalled = Open();
  auto client = Open();
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  api_.feed()->Push(PointsAt(1));
  EXPECT_THAT(client->ReadChunksUntil("event: points"), HasSubstr(FrameAt(1)));
}

TEST_F(EventStreamTest, StopEndsOpenStreams) {
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(Open());
  api_.feed()->AwaitWatches(20);
  std::thread stopper([this] { server().Stop(); });
  for (auto& client : clients) {
    EXPECT_THAT(client->ReadChunk(), HasSubstr("the server is stopping; come back"));
    EXPECT_EQ(client->ReadChunk(), "");
    EXPECT_TRUE(client->AwaitClose());
    client->Close();
  }
  stopper.join();
  api_.feed()->AwaitWatches(0);
  api_.feed()->Push(PointsAt(1));  // rings nobody's bell
}

TEST_F(EventStreamTest, StopCutsOffAClientThatDoesNotRead) {
  options_.stop_grace = std::chrono::milliseconds(20);
  for (int i = 0; i < 200; ++i) {
    v1::WatchRunsResponse event;
    event.mutable_run()->set_display_name(std::string(100000, 'x'));
    api_.feed()->Push(event);
  }
  auto client = Open();
  client->ReadChunk();
  server().Stop();
  api_.feed()->AwaitWatches(0);
}

TEST_F(EventStreamTest, AnOldClientGetsAPlainStream) {
  api_.feed()->Push(PointsAt(1));
  api_.feed()->Finish();
  HttpClient client(port());
  client.Send(
      fmt::format("GET /api/v1/events HTTP/1.0\r\nHost: localhost:{}\r\n"
                  "Authorization: Bearer owner-token\r\n\r\n",
                  port()));
  const Response head = client.ReadHead();
  EXPECT_EQ(head.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(client.ReadAll(), FrameAt(1));
}

}  // namespace
}  // namespace normlab::http
