// Many watchers of one live run: how long a point takes from its trainer to each of them.
//
//   watch_load --grpc HOST:PORT --http HOST:PORT --token T --run ID --steps N --first-step N
//
// The run is one of the scripted trainer's with value=steady: the loss of a step is the steady
// clock at the moment when it was reported, so that now minus loss is the latency. Every watcher
// must see every step from 1 to N once. Latencies are counted from --first-step on, and from then
// on also the processor time of the server (--server-pid) and of this process. Readers that open a
// stream and take nothing from it can be added (--stalled, half of them gRPC). Prints one line of
// JSON; tests/bench/watch_load.py starts the server and reads it.
#include <google/protobuf/arena.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "normlab/v1/run_service.grpc.pb.h"

namespace normlab {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

struct Options {
  std::string grpc, http, token, run;
  int64_t steps = 0, first_step = 0;
  int watchers = 1000, connections = 100, streams = 500, stalled = 0;
  int server_pid = 0;
  double seconds = 300;  // at most
};

int64_t NowNanos() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What the readers of one thread have seen together.
struct Tally {
  std::vector<float> latencies_ms;
  int64_t messages = 0, lost = 0, doubled = 0;
  std::vector<std::string> faults;
  std::atomic<int> ended = 0;
  std::atomic<int64_t> latest_step = 0;
};

// What one reader has seen.
class Ledger {
 public:
  Ledger(const Options& options, Tally& tally) : options_(options), tally_(tally) {}

  void See(int64_t step, double sent_nanos, int64_t now) {
    if (step <= last_) {
      ++tally_.doubled;
      return;
    }
    tally_.lost += step - last_ - 1;
    last_ = step;
    if (step > tally_.latest_step.load(std::memory_order_relaxed)) tally_.latest_step = step;
    if (step < options_.first_step) return;
    const double nanos = static_cast<double>(now) - sent_nanos;
    tally_.latencies_ms.push_back(static_cast<float>(nanos / 1e6));
  }
  void CountMessage() { ++tally_.messages; }
  void Fault(const std::string& fault) { tally_.faults.push_back(fault); }
  void End(const std::string& fault) {
    tally_.lost += options_.steps - last_;
    if (!fault.empty()) Fault(fault);
    ++tally_.ended;
  }

 private:
  const Options& options_;
  Tally& tally_;
  int64_t last_ = 0;
};

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

const std::shared_ptr<grpc::Channel>& Connect(const Options& options, int count, Channels& all) {
  if (static_cast<int>(all.size()) < options.connections) {
    grpc::ChannelArguments arguments;
    // Else all channels to one address share a connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    all.push_back(
        grpc::CreateCustomChannel(options.grpc, grpc::InsecureChannelCredentials(), arguments));
  }
  return all[static_cast<size_t>(count) % all.size()];
}

// Where one thread's readers decode a message each after the other. On the two cores that the load
// shares with the server, making and freeing each message's parts would be a good part of it.
class Scratch {
 public:
  const v1::WatchRunsResponse* Decode(grpc::ByteBuffer& bytes) {
    arena_.Reset();
    auto* message = google::protobuf::Arena::CreateMessage<v1::WatchRunsResponse>(&arena_);
    grpc::ProtoBufferReader reader(&bytes);
    return message->ParseFromZeroCopyStream(&reader) ? message : nullptr;
  }

 private:
  std::array<char, 65536> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
};

// A gRPC watcher: one operation after the other, each ending with a call of Proceed.
class GrpcWatcher {
 public:
  GrpcWatcher(const Options& options, const std::shared_ptr<grpc::Channel>& channel,
              grpc::CompletionQueue& queue, Scratch& scratch, Tally& tally)
      : stub_(channel), scratch_(scratch), ledger_(options, tally) {
    context_.AddMetadata("authorization", "Bearer " + options.token);
    v1::WatchRunsRequest request;
    request.add_runs(options.run);
    const grpc::Slice bytes(request.SerializeAsString());
    request_ = grpc::ByteBuffer(&bytes, 1);
    call_ = stub_.PrepareCall(&context_, "/normlab.v1.RunService/WatchRuns", &queue);
    call_->StartCall(this);
  }

  void Proceed(bool ok) {
    if (stage_ == Stage::kFinishing) {
      return ledger_.End(status_.ok() ? "" : "gRPC: " + status_.error_message());
    }
    if (!ok) {
      stage_ = Stage::kFinishing;
      return call_->Finish(&status_, this);
    }
    if (stage_ == Stage::kStarting) {
      stage_ = Stage::kAsking;
      return call_->WriteLast(request_, grpc::WriteOptions(), this);
    }
    if (std::exchange(stage_, Stage::kReading) == Stage::kReading) Take();
    call_->Read(&bytes_, this);
  }
  void Cancel() { context_.TryCancel(); }

 private:
  enum class Stage { kStarting, kAsking, kReading, kFinishing };

  void Take() {
    ledger_.CountMessage();
    const v1::WatchRunsResponse* message = scratch_.Decode(bytes_);
    if (message == nullptr) return ledger_.Fault("gRPC: a message cannot be read");
    if (!message->has_points()) return;
    const int64_t now = NowNanos();
    for (const v1::Column& column : message->points().columns()) {
      if (column.name() != "loss") continue;
      for (int i = 0; i < column.steps_size(); ++i) {
        ledger_.See(column.steps(i), column.values(i), now);
      }
    }
  }

  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> call_;
  grpc::ByteBuffer request_, bytes_;
  grpc::Status status_;
  Stage stage_ = Stage::kStarting;
  Scratch& scratch_;
  Ledger ledger_;
};

// An event stream. It asks by HTTP/1.0, to which the answer comes without chunks.
class EventWatcher {
 public:
  EventWatcher(const Options& options, asio::io_context& io, const tcp::endpoint& server,
               Tally& tally)
      : socket_(io), ledger_(options, tally) {
    socket_.connect(server);
    asio::write(socket_, asio::buffer("GET /api/v1/events?runs=" + options.run +
                                      " HTTP/1.0\r\nHost: " + options.http +
                                      "\r\nAuthorization: Bearer " + options.token + "\r\n\r\n"));
  }
  void Read() {
    socket_.async_read_some(asio::buffer(chunk_), [this](auto error, size_t size) {
      if (error) return ledger_.End(ended_ ? "" : "event stream: " + error.message());
      text_.append(chunk_.data(), size);
      TakeFrames();
      Read();
    });
  }
  void Close() { socket_.close(); }

 private:
  void TakeFrames() {
    const int64_t now = NowNanos();
    size_t start = 0;
    for (size_t end; (end = text_.find("\n\n", start)) != text_.npos; start = end + 2) {
      const std::string_view frame(text_.data() + start, end - start);
      ledger_.CountMessage();
      if (frame.find("event: points\n") != frame.npos) TakePoints(frame, now);
      if (frame.find("event: end\n") != frame.npos) ended_ = true;
    }
    text_.erase(0, start);
  }

  // ... "loss":{"steps":[1,2],"values":[3,4]} ... A JSON parser would cost more than the stream.
  void TakePoints(std::string_view frame, int64_t now) {
    constexpr std::string_view kSteps = "\"loss\":{\"steps\":[", kValues = "],\"values\":[";
    const size_t steps = frame.find(kSteps);
    const size_t values = frame.find(kValues, steps);
    if (steps == frame.npos || values == frame.npos) return;
    const char* step = frame.data() + steps + kSteps.size();
    const char* value = frame.data() + values + kValues.size();
    const char* const end = frame.data() + frame.size();
    for (char mark = ','; mark == ','; mark = *value++) {
      int64_t number = 0;
      double nanos = 0;
      step = std::from_chars(step, end, number).ptr + 1;
      value = std::from_chars(value, end, nanos).ptr;
      ledger_.See(number, nanos, now);
    }
  }

  tcp::socket socket_;
  std::array<char, 16384> chunk_;
  std::string text_;
  bool ended_ = false;
  Ledger ledger_;
};

// User and system time that a process has had, in seconds, and its memory in MiB.
struct Usage {
  double seconds = 0, memory = 0;
};

Usage ReadUsage(int pid) {
  Usage usage;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  double user = 0, system = 0;
  int64_t pages = 0;
  for (int i = 3; i < 14; ++i) fields >> field;
  fields >> user >> system;
  for (int i = 16; i < 24; ++i) fields >> field;
  fields >> pages;
  usage.seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  usage.memory = static_cast<double>(pages * sysconf(_SC_PAGESIZE)) / (1 << 20);
  return usage;
}

// Everybody who watches: gRPC on one thread, event streams on another.
class Crowd {
 public:
  explicit Crowd(const Options& options) : options_(options) {
    for (int i = 0; i < options.watchers; ++i) {
      watchers_.push_back(std::make_unique<GrpcWatcher>(options, Connect(options, i, channels_),
                                                        queue_, scratch_, grpc_));
    }
    const size_t colon = options.http.rfind(':');
    tcp::resolver resolver(io_);
    server_ = *resolver.resolve(options.http.substr(0, colon), options.http.substr(colon + 1));
    for (int i = 0; i < options.streams; ++i) {
      streams_.push_back(std::make_unique<EventWatcher>(options, io_, server_, http_));
      streams_.back()->Read();
    }
    for (int i = 0; i < options.stalled; ++i) Stall(i);
    grpc_thread_ = std::thread([this] {
      void* tag = nullptr;
      for (bool ok; queue_.Next(&tag, &ok);) static_cast<GrpcWatcher*>(tag)->Proceed(ok);
    });
    http_thread_ = std::thread([this] { io_.run(); });
  }

  bool ended() const { return grpc_.ended == options_.watchers && http_.ended == options_.streams; }
  int64_t latest_step() const { return std::max<int64_t>(grpc_.latest_step, http_.latest_step); }

  // Ends what has not ended by itself. Afterwards the tallies may be read.
  void Stop() {
    for (const auto& watcher : watchers_) watcher->Cancel();
    asio::post(io_, [this] {
      for (const auto& stream : streams_) stream->Close();
    });
    http_thread_.join();
    while (grpc_.ended < options_.watchers) std::this_thread::yield();
    for (const auto& context : stalled_contexts_) context->TryCancel();
    stalled_.clear();
    queue_.Shutdown();
    grpc_thread_.join();
  }
  Tally& grpc() { return grpc_; }
  Tally& http() { return http_; }

 private:
  // Opens a stream and takes nothing from it.
  void Stall(int number) {
    if (number % 2 == 0) {
      v1::WatchRunsRequest request;
      request.add_runs(options_.run);
      stalled_contexts_.push_back(std::make_unique<grpc::ClientContext>());
      stalled_contexts_.back()->AddMetadata("authorization", "Bearer " + options_.token);
      stalled_.push_back(v1::RunService::NewStub(Connect(options_, number, channels_))
                             ->WatchRuns(stalled_contexts_.back().get(), request));
    } else {
      stalled_streams_.push_back(std::make_unique<EventWatcher>(options_, io_, server_, ignored_));
    }
  }

  const Options& options_;
  Tally grpc_, http_, ignored_;
  Channels channels_;
  grpc::CompletionQueue queue_;
  Scratch scratch_;  // of the thread that serves the queue
  std::vector<std::unique_ptr<GrpcWatcher>> watchers_;
  std::vector<std::unique_ptr<grpc::ClientContext>> stalled_contexts_;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchRunsResponse>>> stalled_;
  asio::io_context io_;
  tcp::endpoint server_;
  std::vector<std::unique_ptr<EventWatcher>> streams_, stalled_streams_;
  std::thread grpc_thread_, http_thread_;
};

nlohmann::json Report(Tally& tally) {
  std::vector<float>& all = tally.latencies_ms;
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return all.empty() ? 0.0
                       : all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))];
  };
  nlohmann::json faults = tally.faults;
  if (faults.size() > 5) faults.erase(faults.begin() + 5, faults.end());
  return {{"points", all.size()},         {"median_ms", at(0.5)},
          {"p99_ms", at(0.99)},           {"max_ms", at(1)},
          {"lost", tally.lost},           {"doubled", tally.doubled},
          {"messages", tally.messages},   {"faults", faults},
          {"faulty", tally.faults.size()}};
}

int Run(const Options& options) {
  using std::chrono::milliseconds;
  Crowd crowd(options);
  const auto deadline =
      std::chrono::steady_clock::now() + milliseconds(static_cast<int64_t>(options.seconds * 1000));
  const auto wait = [&](const std::function<bool()>& done, const std::function<void()>& each) {
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      each();
      std::this_thread::sleep_for(milliseconds(100));
    }
  };
  double memory = 0;
  const auto measure = [&] { memory = std::max(memory, ReadUsage(options.server_pid).memory); };
  wait([&] { return crowd.latest_step() >= options.first_step; }, measure);
  const int64_t start = NowNanos();
  const Usage server = ReadUsage(options.server_pid), own = ReadUsage(getpid());
  wait([&] { return crowd.latest_step() >= options.steps; }, measure);
  const double seconds = static_cast<double>(NowNanos() - start) / 1e9;
  const double server_seconds = ReadUsage(options.server_pid).seconds - server.seconds;
  const double own_seconds = ReadUsage(getpid()).seconds - own.seconds;
  wait([&] { return crowd.ended(); }, measure);
  const bool ended = crowd.ended();
  crowd.Stop();
  const nlohmann::json report = {{"grpc", Report(crowd.grpc())},
                                 {"http", Report(crowd.http())},
                                 {"ended", ended},
                                 {"seconds", seconds},
                                 {"server_cpu", server_seconds / seconds},
                                 {"generator_cpu", own_seconds / seconds},
                                 {"server_mib", memory}};
  std::printf("%s\n", report.dump().c_str());
  return ended ? 0 : 1;
}

}  // namespace
}  // namespace normlab

int main(int argc, char** argv) {
  normlab::Options options;
  CLI::App app("watch_load: many watchers of one live run");
  app.add_option("--grpc", options.grpc)->required();
  app.add_option("--http", options.http)->required();
  app.add_option("--token", options.token)->required();
  app.add_option("--run", options.run)->required();
  app.add_option("--steps", options.steps, "steps of the run")->required();
  app.add_option("--first-step", options.first_step, "first one that is counted");
  app.add_option("--watchers", options.watchers, "gRPC watchers")->capture_default_str();
  app.add_option("--connections", options.connections, "of the gRPC watchers")
      ->capture_default_str();
  app.add_option("--streams", options.streams, "event streams")->capture_default_str();
  app.add_option("--stalled", options.stalled, "readers that take nothing");
  app.add_option("--server-pid", options.server_pid);
  app.add_option("--seconds", options.seconds, "at most")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return normlab::Run(options);
}
