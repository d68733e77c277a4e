// Requests that no generated client would send, for every method and every text in it.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "normlab/v1/run_service.pb.h"
#include "server/base/strings.h"
#include "server/rpc/rpc_server.h"
#include "tests/fakes/fake_api.h"
#include "tests/fakes/temp_dir.h"

namespace normlab::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;

// A field's key and, behind it, `bytes` with their length.
std::string Encoded(const FieldDescriptor& field, const std::string& bytes) {
  std::string out;
  const auto varint = [&out](uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  };
  varint(static_cast<uint64_t>(field.number()) << 3 | 2);
  varint(bytes.size());
  return out + bytes;
}

struct BadText {
  std::string field;
  std::string message;
};

// For each text below `type`, a message with bytes in it that are not UTF-8.
std::vector<BadText> BadTexts(const Descriptor& type, int depth = 0) {
  std::vector<BadText> all;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.type() == FieldDescriptor::TYPE_STRING) {
      all.push_back({field.full_name(), Encoded(field, "a\xC3(\xFF")});
    } else if (field.type() == FieldDescriptor::TYPE_MESSAGE && depth < 4) {
      for (const BadText& inner : BadTexts(*field.message_type(), depth + 1)) {
        all.push_back({inner.field, Encoded(field, inner.message)});
      }
    }
  }
  return all;
}

// A message of the reflection service, whose generated headers Debian leaves out.
std::unique_ptr<Message> ReflectionMessage(const std::string& name) {
  const Descriptor* type =
      DescriptorPool::generated_pool()->FindMessageTypeByName("grpc.reflection.v1alpha." + name);
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(type)->New());
}

class MalformedRequestTest : public ::testing::Test {
 protected:
  MalformedRequestTest() {
    EXPECT_TRUE(server_.Start({"127.0.0.1:0", folder_.path() / "socket"}).ok());
    channel_ = grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials());
  }

  // Every method of this API that the server says it has: whoever adds a service has it in here.
  std::vector<const MethodDescriptor*> Methods() {
    std::vector<const MethodDescriptor*> methods;
    for (const std::string& name : ServedServices()) {
      if (!name.starts_with("normlab.")) continue;  // health and reflection are gRPC's own
      const auto* service = DescriptorPool::generated_pool()->FindServiceByName(name);
      if (service == nullptr) {
        ADD_FAILURE() << "nobody knows " << name;
        continue;
      }
      for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
    }
    return methods;
  }

  std::vector<std::string> ServedServices() {
    const auto request = ReflectionMessage("ServerReflectionRequest");
    request->GetReflection()->SetString(
        request.get(), request->GetDescriptor()->FindFieldByName("list_services"), "");
    std::string answer;
    const grpc::Status status =
        Call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
             request->SerializeAsString(), &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto response = ReflectionMessage("ServerReflectionResponse");
    EXPECT_TRUE(response->ParseFromString(answer));
    const Message& list = response->GetReflection()->GetMessage(
        *response, response->GetDescriptor()->FindFieldByName("list_services_response"));
    const FieldDescriptor* service = list.GetDescriptor()->FindFieldByName("service");
    std::vector<std::string> names;
    for (int i = 0; i < list.GetReflection()->FieldSize(list, service); ++i) {
      const Message& one = list.GetReflection()->GetRepeatedMessage(list, service, i);
      names.push_back(
          one.GetReflection()->GetString(one, one.GetDescriptor()->FindFieldByName("name")));
    }
    return names;
  }

  // The status of a call with these bytes for a request.
  grpc::Status Call(const MethodDescriptor& method, const std::string& request) {
    return Call(StrCat("/", method.service()->full_name(), "/", method.name()), request);
  }
  // The same; `last` gets the last message of the answer.
  grpc::Status Call(const std::string& path, const std::string& request,
                    std::string* last = nullptr) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", StrCat("Bearer ", testing::FakeApi::kToken));
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel_);
    const auto call = stub.PrepareCall(&context, path, &queue);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->StartCall(Tag(1));
    Await(queue, 1);
    call->WriteLast(bytes, {}, Tag(2));
    Await(queue, 2);
    while (call->Read(&answer, Tag(3)), Await(queue, 3)) {
      grpc::Slice whole;
      if (last == nullptr || !answer.DumpToSingleSlice(&whole).ok()) continue;
      last->assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
    }
    call->Finish(&status, Tag(4));
    Await(queue, 4);
    return status;
  }

  static void* Tag(intptr_t number) { return reinterpret_cast<void*>(number); }
  static bool Await(grpc::CompletionQueue& queue, intptr_t number) {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(tag, Tag(number));
    return ok;
  }

  fakes::TempDir folder_;
  testing::FakeApi api_;
  RpcServer server_{api_, nullptr, WatchLimits()};
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(MalformedRequestTest, EveryServiceOfTheApiIsLookedAt) {
  std::set<std::string> services;
  for (const MethodDescriptor* method : Methods()) services.insert(method->service()->name());
  EXPECT_THAT(services, ::testing::IsSupersetOf({"RunService", "ExperimentService", "DeviceService",
                                                 "StorageService", "UserService"}));
}

TEST_F(MalformedRequestTest, ATextThatIsNotUtf8IsTheCallersMistakeInEveryFieldOfEveryMethod) {
  size_t texts = 0;
  for (const MethodDescriptor* method : Methods()) {
    for (const BadText& bad : BadTexts(*method->input_type())) {
      const grpc::Status status = Call(*method, bad.message);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
          << method->full_name() << " " << bad.field << ": " << status.error_message();
      EXPECT_FALSE(status.error_message().empty()) << method->full_name() << " " << bad.field;
      ++texts;
    }
  }
  EXPECT_GT(texts, 50u);
}

TEST_F(MalformedRequestTest, ARequestThatIsCutOffIsTheCallersMistake) {
  for (const MethodDescriptor* method : Methods()) {
    for (const std::string& request : {std::string("\x0a\x7f\x01"), std::string(20, '\xff')}) {
      const grpc::Status status = Call(*method, request);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method->full_name();
    }
  }
}

TEST_F(MalformedRequestTest, DeepNestingIsRefused) {
  // Unknown groups within groups, as deep as a message of this size can have them.
  const std::string request(100'000, '\x7b');
  EXPECT_EQ(Call(*Methods().front(), request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(MalformedRequestTest, WellFormedRequestsAndAnswersAreLeftAlone) {
  api_.get_run = [](const v1::GetRunRequest&) { return absl::NotFoundError("no such run"); };
  const auto* get = v1::GetRunRequest::descriptor()->file()->service(0)->FindMethodByName("GetRun");
  const grpc::Status status = Call(*get, "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no such run");
}

}  // namespace
}  // namespace normlab::rpc
