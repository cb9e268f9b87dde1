// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/grpc_client.h"

#include <google/protobuf/message_lite.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <sys/stat.h>

#include <array>
#include <set>

#include "base/log.h"
#include "base/mutex.h"
#include "identity/sources/list_items.h"
#include "task/thread.h"
#include "task/timer.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kRoomBesideMessage = 4 << 20;  // for the connection itself

constexpr const char* kNotStarted = "grpc_not_started";
constexpr size_t kThreadsOfGrpc = 16;  // twice as many as it was seen to make

// gRPC does not say that it could not make a thread. It then has too few for good, and hangs when it ends them.
Status find_room_for_its_threads() {
  std::array<task::Thread, kThreadsOfGrpc> threads;
  const auto wait_for_the_end = [](const std::stop_token& stop) {
    (void)task::system_timer().sleep(stop, std::chrono::hours(1));
  };
  for (task::Thread& thread : threads) GL_TRY_STATUS(thread.start(wait_for_the_end));
  return ok_status();
}

Status start_grpc() {
  static Mutex mutex;
  static bool started = false;
  const MutexLock lock(mutex);
  if (started) return ok_status();
  GL_TRY_STATUS(find_room_for_its_threads());
  // Otherwise it writes to stderr in its own format.
  gpr_set_log_function([](gpr_log_func_args* args) { log_debug("grpc", {{"text", args->message}}); });
  // Never shut down: gRPC may wait ten seconds for its own poller then.
  grpc_init();
  // Never used and never ended: gRPC ends its threads with the last channel, and would make them again for the next.
  static const auto* const keeps_threads =
      new std::shared_ptr<grpc::Channel>(grpc::CreateChannel("unix:/", grpc::InsecureChannelCredentials()));
  (void)keeps_threads;
  started = true;
  return ok_status();
}

// Identifies the socket at a path. A restarted server makes a new one.
using SocketFile = std::pair<ino_t, int64_t>;
SocketFile read_socket_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_ino, int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec};
}

std::string bytes_of(grpc::ByteBuffer& buffer) {
  grpc::Slice whole;
  if (!buffer.DumpToSingleSlice(&whole).ok()) return {};
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

// The only request: a message with no field set has no bytes.
grpc::ByteBuffer empty_message() {
  const grpc::Slice nothing;
  return {&nothing, 1};
}

// On the monotonic clock: a deadline must not move when the time is set.
gpr_timespec after(std::chrono::milliseconds wait) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait.count(), GPR_TIMESPAN));
}

struct CancelCall {
  grpc::ClientContext& context;
  void operator()() const { context.TryCancel(); }
};

class OpenStream final : public GrpcClient::Stream {
 public:
  OpenStream(std::shared_ptr<grpc::GenericStub> stub, std::string socket, const std::string& method,
             std::stop_token stop)
      : stub_(std::move(stub)),
        socket_(std::move(socket)),
        call_(stub_->PrepareCall(&context_, method, &queue_)),
        on_stop_(std::move(stop), CancelCall{context_}) {
    call_->StartCall(nullptr);
    bool good = wait();
    if (good) {
      call_->Write(empty_message(), grpc::WriteOptions().set_last_message(), nullptr);
      good = wait();
    }
    if (good) {
      call_->Read(&buffer_, nullptr);
    } else {
      end();
    }
  }

  ~OpenStream() override {
    context_.TryCancel();
    if (!ended_) {
      wait();  // for the pending read, which fails now
      end();
    }
    queue_.Shutdown();
    while (wait()) {}
  }

  Got next(std::string& bytes, std::chrono::milliseconds longest) override {
    if (ended_) return Got::kEnd;
    void* tag = nullptr;
    bool good = false;
    if (queue_.AsyncNext(&tag, &good, after(longest)) == grpc::CompletionQueue::TIMEOUT) return Got::kNothingYet;
    if (!good) {
      end();
      return Got::kEnd;
    }
    bytes = bytes_of(buffer_);
    buffer_.Clear();
    call_->Read(&buffer_, nullptr);
    return Got::kMessage;
  }

  const GrpcOutcome& outcome() const override { return outcome_; }

 private:
  bool wait() {
    void* tag = nullptr;
    bool good = false;
    return queue_.Next(&tag, &good) && good;
  }

  void end() {
    ended_ = true;
    grpc::Status status;
    call_->Finish(&status, nullptr);
    wait();
    outcome_ = read_outcome(status.error_code(), status.error_message(), socket_);
  }

  const std::shared_ptr<grpc::GenericStub> stub_;  // the call needs its channel alive
  const std::string socket_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::ByteBuffer buffer_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> call_;
  bool ended_ = false;
  GrpcOutcome outcome_;
  const std::stop_callback<CancelCall> on_stop_;
};

// One that could not be opened.
class NoStream final : public GrpcClient::Stream {
 public:
  explicit NoStream(GrpcOutcome why) : outcome_(std::move(why)) {}
  Got next(std::string&, std::chrono::milliseconds) override { return Got::kEnd; }
  const GrpcOutcome& outcome() const override { return outcome_; }

 private:
  const GrpcOutcome outcome_;
};

}  // namespace

struct GrpcClient::Connection {
  SocketFile file;
  std::shared_ptr<grpc::GenericStub> stub;
};

GrpcClient::GrpcClient(std::string socket, size_t largest_message, std::chrono::milliseconds connect_within)
    : socket_(std::move(socket)), largest_message_(largest_message), connect_within_(connect_within) {}

GrpcClient::~GrpcClient() = default;

bool GrpcClient::refresh() {
  const SocketFile file = read_socket_file(socket_);
  if (connection_ && connection_->file == file) return false;
  if (!start_grpc().ok()) return false;  // who calls next is told
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(largest_message_));
  // The limit above applies to complete messages. This one ends a call that exceeds it while receiving; twice the size,
  // because memory of earlier messages may not be freed yet.
  grpc::ResourceQuota quota;
  quota.Resize(2 * largest_message_ + kRoomBesideMessage);
  arguments.SetResourceQuota(quota);
  // A small message must not decompress to a large one: compression is neither requested nor accepted.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Newer versions would send the path of the socket, percent-encoded, which Go's servers refuse.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Also the timeout of the server's handshake.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_within_.count()));
  // The process-wide pool would return the old connection, still in its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
  connection_ = std::make_shared<Connection>(Connection{file, std::make_shared<grpc::GenericStub>(std::move(channel))});
  return true;
}

GrpcOutcome GrpcClient::list(const std::string& method, google::protobuf::MessageLite& item,
                             const std::function<void()>& each, std::chrono::milliseconds deadline,
                             std::stop_token stop) {
  if (const Status started = start_grpc(); !started.ok()) return {kNotStarted, started.error().message};
  if (!connection_) refresh();
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(after(deadline));
  const std::stop_callback on_stop(std::move(stop), CancelCall{context});
  const auto reader = connection_->stub->PrepareUnaryCall(&context, method, empty_message(), &queue);
  grpc::ByteBuffer bytes;
  grpc::Status status;
  void* tag = nullptr;
  bool good = false;
  reader->StartCall();
  reader->Finish(&bytes, &status, nullptr);
  queue.Next(&tag, &good);
  queue.Shutdown();
  while (queue.Next(&tag, &good)) {}
  if (status.ok()) {
    grpc::ProtoBufferReader reader_of_bytes(&bytes);
    if (bytes.Valid() && parse_items(reader_of_bytes, item, each)) return {};
    return {"malformed", method + ": the answer cannot be read"};
  }
  GrpcOutcome outcome = read_outcome(status.error_code(), status.error_message(), socket_);
  // A failed connection waits before it tries again; a new one does not.
  static const std::set<std::string> of_the_connection = {"unavailable", "no_socket", "no_permission",
                                                          "deadline_exceeded", "internal"};
  if (of_the_connection.contains(outcome.code)) connection_.reset();
  return outcome;
}

std::unique_ptr<GrpcClient::Stream> GrpcClient::open(const std::string& method, std::stop_token stop) {
  if (const Status started = start_grpc(); !started.ok())
    return std::make_unique<NoStream>(GrpcOutcome{kNotStarted, started.error().message});
  connection_.reset();
  refresh();
  return std::make_unique<OpenStream>(connection_->stub, socket_, method, std::move(stop));
}

}  // namespace gpuledger::identity

#ifdef __SANITIZE_THREAD__
// gRPC and Abseil are not built with the sanitizer, so it does not see how their threads synchronize. Only our log
// function runs on those threads. The first two lines alone do not suffice; without them every received megabyte takes
// a second to be suppressed.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc_unsecure.so\n"
         "called_from_lib:libgpr.so\n"
         "race:libgrpc\n"
         "race:libgpr\n"
         "race:libabsl\n"
         "race:libupb\n"
         "race:grpc::\n";
}
#endif
