// Bodies of HTTP requests: filled into the message they should be, or refused with the field and in
// well-formed text. What was taken prints as JSON that is taken for the same message.
#include <cstdint>
#include <memory>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "normlab/v1/experiment_service.pb.h"
#include "normlab/v1/run_service.pb.h"
#include "normlab/v1/user_service.pb.h"
#include "server/http/errors.h"
#include "server/http/json_body.h"
#include "server/http/text.h"
#include "tests/fuzz/property.h"

namespace {

using google::protobuf::Message;

std::unique_ptr<Message> Empty(uint8_t kind) {
  switch (kind % 5) {
    case 0:
      return std::make_unique<normlab::v1::RunSpec>();
    case 1:
      return std::make_unique<normlab::v1::Run>();
    case 2:
      return std::make_unique<normlab::v1::CreateExperimentRequest>();
    case 3:
      return std::make_unique<normlab::v1::ExchangeLoginCodeRequest>();
    default:
      return std::make_unique<normlab::v1::PruneRunsRequest>();
  }
}

// The same for the same message, also with maps in it.
std::string Bytes(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    REQUIRE(message.SerializeToCodedStream(&coded));
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  normlab::fuzz::Input input(data, size);
  const std::unique_ptr<Message> message = Empty(input.Value<uint8_t>());
  const absl::Status status = normlab::http::FromJson(input.Rest(), *message);
  normlab::fuzz::RequireClientError(status);
  if (!status.ok()) {
    const std::string told = normlab::http::ErrorAnswer(status).body;
    REQUIRE(normlab::http::IsUtf8(told) && normlab::http::ParseObject(told).ok());
    return 0;
  }
  const std::string json = normlab::http::ToJson(*message);
  const std::unique_ptr<Message> again(message->New());
  REQUIRE(normlab::http::FromJson(json, *again).ok());
  REQUIRE(Bytes(*again) == Bytes(*message));
  return 0;
}
