// The part of the api that looks at files: texts, weights, checkpoints and logs.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "server/app/server_api.h"
#include "server/base/ids.h"
#include "server/base/strings.h"
#include "server/storage/curves.h"
#include "server/storage/lineage.h"

namespace normlab::app {
namespace {

constexpr char kTextPrefix[] = "text:";
constexpr int32_t kLogPiece = 64 << 10;  // bytes
constexpr int32_t kLargestLogPiece = 1 << 20;

// Fills offset, data and size from the file. One that is not there is empty: it is made when the
// attempt starts.
absl::Status ReadPiece(const std::filesystem::path& path, const v1::ReadLogRequest& request,
                       v1::ReadLogResponse& piece) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return absl::UnavailableError(StrCat(path.string(), ": ", error.message()));
  const int64_t from = request.offset() < 0 ? std::max<int64_t>(size + request.offset(), 0)
                                            : std::min(request.offset(), size);
  const int64_t most = request.max_bytes() == 0 ? kLogPiece : request.max_bytes();
  std::string data(std::min(most, size - from), '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(from);
  file.read(data.data(), static_cast<std::streamsize>(data.size()));
  if (!file) return absl::UnavailableError(StrCat(path.string(), " cannot be read"));
  piece.set_offset(from);
  piece.set_size(size);
  piece.set_data(std::move(data));
  return absl::OkStatus();
}

bool NamesRun(const v1::RunSpec& effective) {
  return effective.init_from() != "none" && !RunFiles::NamesFile(effective.init_from());
}

}  // namespace

absl::StatusOr<storage::Checkpoint> ServerApi::FindCheckpoint(const std::string& text) {
  absl::StatusOr<storage::Checkpoint> found;
  absl::Status status = parts_.store.Read([&](storage::Database& database) {
    const absl::StatusOr<std::string> run = storage::ResolveRun(database, text);
    found = run.ok() ? storage::ReadLatestCheckpoint(database, *run) : run.status();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return found;
}

void ServerApi::CheckFiles(const std::string& prefix, v1::RunSpec& effective,
                           std::vector<domain::FieldViolation>& wrong) {
  if (effective.data().starts_with(kTextPrefix)) {
    const std::string name = effective.data().substr(sizeof(kTextPrefix) - 1);
    const absl::Status text = parts_.files.FindText(name).status();
    if (!text.ok()) wrong.push_back({prefix + "spec.data", std::string(text.message())});
  }
  if (effective.init_from() == "none") return;
  absl::Status init;
  if (NamesRun(effective)) {
    const absl::StatusOr<storage::Checkpoint> checkpoint = FindCheckpoint(effective.init_from());
    init = checkpoint.status();
    if (checkpoint.ok()) effective.set_init_from(checkpoint->run);
  } else {
    init = parts_.files.FindWeights(effective.init_from()).status();
  }
  if (!init.ok()) wrong.push_back({prefix + "spec.init_from", std::string(init.message())});
}

absl::Status ServerApi::KeepInits(const std::vector<v1::Run>& runs) {
  absl::Status status;
  for (const v1::Run& run : runs) {
    if (!status.ok()) break;
    if (!NamesRun(run.effective_spec())) continue;
    const absl::StatusOr<storage::Checkpoint> checkpoint =
        FindCheckpoint(run.effective_spec().init_from());
    status = checkpoint.ok()
                 ? parts_.files.KeepInit(
                       run.id(), parts_.files.Checkpoints(checkpoint->run) / checkpoint->file)
                 : checkpoint.status();
  }
  if (status.ok()) return status;
  for (const v1::Run& run : runs) parts_.files.DropInit(run.id());
  return status;
}

absl::StatusOr<OpenCheckpoint> ServerApi::ReadCheckpoint(const Principal&,
                                                         const v1::ReadCheckpointRequest& request) {
  if (!IsUlid(request.run())) {
    return absl::NotFoundError(StrCat("there is no run ", request.run().substr(0, 64)));
  }
  absl::StatusOr<storage::Checkpoint> found;
  absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
    if (auto run = storage::ReadRun(database, request.run()).status(); !run.ok()) return run;
    found = storage::ReadLatestCheckpoint(database, request.run());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (absl::IsNotFound(found.status()))
    return absl::FailedPreconditionError(found.status().message());
  if (!found.ok()) return found.status();
  const std::filesystem::path path = parts_.files.Checkpoints(found->run) / found->file;
  OpenCheckpoint checkpoint;
  checkpoint.step = found->step;
  checkpoint.file.open(path, std::ios::binary | std::ios::ate);
  checkpoint.bytes = checkpoint.file.tellg();
  checkpoint.file.seekg(0);
  if (!checkpoint.file) {
    return absl::FailedPreconditionError(StrCat("the checkpoint of step ", checkpoint.step,
                                                " is gone: there is no file ", path.string()));
  }
  return checkpoint;
}

absl::StatusOr<v1::ReadLogResponse> ServerApi::ReadLog(const Principal&,
                                                       const v1::ReadLogRequest& request) {
  if (absl::Status status = CheckId("run", request.run()); !status.ok()) return status;
  if (request.max_bytes() < 0 || request.max_bytes() > kLargestLogPiece) {
    return domain::InvalidFields(
        {{"max_bytes",
          StrCat(request.max_bytes(), " is out of range; use 0 to ", kLargestLogPiece)}});
  }
  absl::StatusOr<std::vector<storage::AttemptRow>> attempts;
  const absl::Status status = parts_.store.Read([&](storage::Database& database) -> absl::Status {
    if (auto found = storage::CheckRunExists(database, request.run()); !found.ok()) return found;
    attempts = storage::ReadAttempts(database, request.run());
    return attempts.status();
  });
  if (!status.ok()) return status;
  v1::ReadLogResponse piece;
  const int32_t latest = attempts->empty() ? 0 : attempts->back().number;
  if (request.attempt() < 0 || request.attempt() > latest) {
    return absl::OutOfRangeError(
        StrCat("there is no attempt ", request.attempt(), " of this run: it has had ", latest));
  }
  piece.set_attempt(request.attempt() == 0 ? latest : request.attempt());
  if (piece.attempt() == 0) return piece;
  const absl::Status read =
      ReadPiece(parts_.files.Log(request.run(), piece.attempt()), request, piece);
  if (!read.ok()) return read;
  return piece;
}

}  // namespace normlab::app
