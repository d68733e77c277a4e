#include "server/app/run_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>
#include <system_error>
#include <vector>

#include "server/base/files.h"
#include "server/base/ids.h"
#include "server/base/strings.h"

namespace normlab::app {
namespace {

namespace fs = std::filesystem;

constexpr char kWeightsEnd[] = ".safetensors";
constexpr char kTextEnd[] = ".txt";
constexpr char kTextPrefix[] = "text:";
constexpr size_t kNamesShown = 20;

// One part of a path, and not one that leads elsewhere or is hidden.
absl::Status CheckName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 255 && name.front() != '.' &&
                     std::none_of(name.begin(), name.end(), [](char c) {
                       return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
                     });
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "needs the plain name of a file of the server: no '/', no '.' in front");
}

// Names of the files in `folders` that end in `end`, which is left out if `cut`.
std::string Names(const std::vector<fs::path>& folders, std::string_view end, bool cut) {
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      std::string name = entry.path().filename().string();
      const bool fits = name.size() > end.size() && name.ends_with(end);
      if (name.starts_with('.') || !entry.is_regular_file(error) || (!fits && !cut)) continue;
      if (fits && cut) name.resize(name.size() - end.size());
      names.insert(std::move(name));
    }
  }
  if (names.empty()) return "there are none yet";
  std::string list = "there is: ";
  size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kNamesShown) return StrCat(list, " and ", names.size() - shown, " more");
    StrAppend(&list, shown++ == 0 ? "" : ", ", name);
  }
  return list;
}

// OK for a file with something in it.
absl::Status CheckFile(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return absl::NotFoundError("there is no such file");
  if (fs::file_size(path, error) == 0 && !error) {
    return absl::InvalidArgumentError(StrCat(path.string(), " is empty"));
  }
  if (access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(path.string(), " cannot be read: ", std::strerror(errno)));
}

// The first of `candidates` that there is.
absl::StatusOr<fs::path> FirstOf(const std::vector<fs::path>& candidates) {
  for (const fs::path& path : candidates) {
    const absl::Status status = CheckFile(path);
    if (status.ok()) return path;
    if (!absl::IsNotFound(status)) return status;
  }
  return absl::NotFoundError("there is no such file");
}

int64_t BytesIn(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;  // meanwhile, perhaps
    const bool is_file = entry->is_regular_file(gone) && !entry->is_symlink(gone);
    const uintmax_t size = is_file ? entry->file_size(gone) : 0;
    if (!gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

absl::Status RemoveAll(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(StrCat("cannot remove ", folder.string(), ": ", error.message()));
}

bool NamesText(const v1::RunSpec& spec) { return spec.data().starts_with(kTextPrefix); }

}  // namespace

absl::Status RunFiles::MakeCheckpoints(const std::string& run) const {
  for (const fs::path& folder : {data_dir_ / "runs", data_dir_ / "runs" / run, Checkpoints(run)}) {
    if (absl::Status status = MakePrivateDirectory(folder); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool RunFiles::NamesFile(const std::string& init_from) { return init_from.ends_with(kWeightsEnd); }

absl::StatusOr<fs::path> RunFiles::FindWeights(const std::string& name) const {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  absl::StatusOr<fs::path> found = FirstOf({data_dir_ / "weights" / name});
  if (!absl::IsNotFound(found.status())) return found;
  const fs::path folder = data_dir_ / "weights";
  return absl::InvalidArgumentError(StrCat("there is no ", name, " in ", folder.string(), "; ",
                                           Names({folder}, kWeightsEnd, /*cut=*/false)));
}

absl::StatusOr<fs::path> RunFiles::FindText(const std::string& name) const {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  std::vector<fs::path> candidates;
  const std::vector<fs::path> folders = {data_dir_ / "texts", shipped_texts_};
  for (const fs::path& folder : folders) {
    candidates.push_back(folder / name);
    candidates.push_back(folder / StrCat(name, kTextEnd));
  }
  absl::StatusOr<fs::path> found = FirstOf(candidates);
  if (!absl::IsNotFound(found.status())) return found;
  return absl::InvalidArgumentError(StrCat("there is no text ", name, " in ", folders[0].string(),
                                           "; ", Names(folders, kTextEnd, /*cut=*/true)));
}

absl::Status RunFiles::KeepInit(const std::string& run, const fs::path& checkpoint) const {
  for (const fs::path& folder : {data_dir_ / "runs", data_dir_ / "runs" / run}) {
    if (absl::Status status = MakePrivateDirectory(folder); !status.ok()) return status;
  }
  if (link(checkpoint.c_str(), Init(run).c_str()) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("cannot keep ", checkpoint.string(), ": ", std::strerror(errno)));
}

void RunFiles::DropInit(const std::string& run) const {
  std::error_code ignored;
  fs::remove(Init(run), ignored);
  fs::remove(Init(run).parent_path(), ignored);
}

fs::path RunFiles::Attempt(const std::string& run, int32_t number) const {
  return data_dir_ / "attempts" / StrCat(run, "-", number);
}

fs::path RunFiles::Log(const std::string& run, int32_t attempt) const {
  return Attempt(run, attempt) / "log";
}

std::vector<fs::path> RunFiles::Folders(const std::string& run, int32_t attempts) const {
  std::vector<fs::path> folders = {data_dir_ / "runs" / run};
  for (int32_t number = 1; number <= attempts; ++number) {
    folders.push_back(Attempt(run, number));
  }
  return folders;
}

int64_t RunFiles::Bytes(const std::string& run, int32_t attempts) const {
  int64_t bytes = 0;
  for (const fs::path& folder : Folders(run, attempts)) bytes += BytesIn(folder);
  return bytes;
}

int64_t RunFiles::CheckpointBytes(const std::string& run) const {
  return BytesIn(Checkpoints(run));
}

absl::Status RunFiles::Remove(const std::string& run, int32_t attempts) const {
  absl::Status status;
  for (const fs::path& folder : Folders(run, attempts)) status.Update(RemoveAll(folder));
  return status;
}

absl::Status RunFiles::RemoveCheckpoints(const std::string& run) const {
  return RemoveAll(Checkpoints(run));
}

std::map<std::string, int32_t> RunFiles::RunsWithFiles() const {
  std::map<std::string, int32_t> runs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir_ / "runs", error)) {
    const std::string name = entry.path().filename().string();
    if (IsUlid(name)) runs.try_emplace(name, 0);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir_ / "attempts", error)) {
    const std::string name = entry.path().filename().string();
    const size_t dash = name.find('-');
    int32_t number = 0;
    if (dash == std::string::npos || !IsUlid(name.substr(0, dash))) continue;
    std::from_chars(name.data() + dash + 1, name.data() + name.size(), number);
    int32_t& highest = runs[name.substr(0, dash)];
    highest = std::max(highest, number);
  }
  return runs;
}

fs::path RunFiles::InitFile(const std::string& run, const v1::RunSpec& effective) const {
  if (effective.init_from() == "none" || effective.init_from().empty()) return {};
  if (!NamesFile(effective.init_from())) return Init(run);
  return data_dir_ / "weights" / effective.init_from();
}

fs::path RunFiles::TextFile(const v1::RunSpec& effective) const {
  if (!NamesText(effective)) return {};
  const std::string name = effective.data().substr(sizeof(kTextPrefix) - 1);
  const absl::StatusOr<fs::path> found = FindText(name);
  return found.ok() ? *found : data_dir_ / "texts" / name;
}

}  // namespace normlab::app
