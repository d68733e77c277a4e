// Where the files of runs are. Below the data folder:
//
//   runs/RUN/checkpoints/     what the run's trainers write
//   runs/RUN/init.safetensors the checkpoint of another run that this one starts from, as it was
//                             when this one was submitted
//   attempts/RUN-N/           of the run's N-th attempt: spool, log, ...
//   weights/NAME.safetensors  put there by people, for init_from
//   texts/NAME                likewise, for data; besides those that come with the program
//
// All functions may be called from any thread.
#ifndef NORMLAB_SERVER_APP_RUN_FILES_H_
#define NORMLAB_SERVER_APP_RUN_FILES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "normlab/v1/run_spec.pb.h"

namespace normlab::app {

class RunFiles {
 public:
  // `shipped_texts`: folder of the texts that come with the program; it may be missing.
  RunFiles(std::filesystem::path data_dir, std::filesystem::path shipped_texts)
      : data_dir_(std::move(data_dir)), shipped_texts_(std::move(shipped_texts)) {}

  std::filesystem::path Checkpoints(const std::string& run) const {
    return data_dir_ / "runs" / run / "checkpoints";
  }
  // Makes that folder and those above it, closed to others (0700).
  absl::Status MakeCheckpoints(const std::string& run) const;

  // Whether init_from names a file, as opposed to a run.
  static bool NamesFile(const std::string& init_from);

  // The file that such an init_from names. INVALID_ARGUMENT, with the names there are, when there
  // is no such file, it is empty, or its name leads out of the folder.
  absl::StatusOr<std::filesystem::path> FindWeights(const std::string& name) const;
  // The same for the NAME of text:NAME: a file of that name, or of that name and .txt.
  absl::StatusOr<std::filesystem::path> FindText(const std::string& name) const;

  // Keeps `checkpoint`, a file of another run, as what `run` starts from. A hard link: it costs
  // nothing, and the other run may go on and replace its checkpoints.
  absl::Status KeepInit(const std::string& run, const std::filesystem::path& checkpoint) const;

  // Takes that back, for a run that could not be stored.
  void DropInit(const std::string& run) const;

  // What the program of an attempt printed.
  std::filesystem::path Log(const std::string& run, int32_t attempt) const;

  // Size of all files of `run`, whose attempts are numbered from 1 to `attempts`; or of its
  // checkpoints only.
  int64_t Bytes(const std::string& run, int32_t attempts) const;
  int64_t CheckpointBytes(const std::string& run) const;

  // Removes them. Another run that started from one of the checkpoints keeps its own link. A file
  // that is not there is fine.
  absl::Status Remove(const std::string& run, int32_t attempts) const;
  absl::Status RemoveCheckpoints(const std::string& run) const;

  // Runs that have files or folders, and the highest number of an attempt that has.
  std::map<std::string, int32_t> RunsWithFiles() const;

  // What the trainer of `run` is told about init_from and data: absolute paths, or empty. Files
  // that have gone since the submit are named all the same; the trainer says what is wrong with
  // them.
  std::filesystem::path InitFile(const std::string& run, const v1::RunSpec& effective) const;
  std::filesystem::path TextFile(const v1::RunSpec& effective) const;

 private:
  std::filesystem::path Init(const std::string& run) const {
    return data_dir_ / "runs" / run / "init.safetensors";
  }
  std::filesystem::path Attempt(const std::string& run, int32_t number) const;
  std::vector<std::filesystem::path> Folders(const std::string& run, int32_t attempts) const;

  const std::filesystem::path data_dir_;
  const std::filesystem::path shipped_texts_;
};

}  // namespace normlab::app

#endif  // NORMLAB_SERVER_APP_RUN_FILES_H_
