#include "server/trainer/train/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "server/base/crc32c.h"
#include "server/trainer/train/safetensors_header.h"

namespace normlab::trainer {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are stored as they are in memory");

constexpr uint64_t kLargestHeader = 100'000'000;
constexpr uint64_t kLengthBytes = 8;
constexpr std::string_view kChecksumKey = "normlab_crc32c";
constexpr size_t kPiece = size_t{1} << 20;  // bytes read at once for a checksum

using Metadata = SafetensorsFile::Metadata;

// Bytes of a tensor, or nothing if they are more than a file can have.
bool SizeOf(const SafetensorsFile::Tensor& tensor, uint64_t* size) {
  *size = ElementSize(tensor.dtype);
  bool overflow = false;
  for (const int64_t n : tensor.shape) {
    overflow |= __builtin_mul_overflow(*size, static_cast<uint64_t>(n), size);
  }
  return !overflow;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
float FromHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023);
  float value =
      std::ldexp(exponent == 0 ? fraction : fraction + 1024.0f, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return half >> 15 ? -value : value;
}

float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

[[noreturn]] void ThrowErrno(const std::string& path, const char* doing) {
  throw std::runtime_error(path + " cannot be " + doing + ": " + std::strerror(errno));
}

// A file that appears under its name only when it is whole and on disk.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(path), temporary_(path + ".tmp") {
    unlink(temporary_.c_str());  // of a process that was killed while writing
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) ThrowErrno(path_, "written");
  }
  ~AtomicFile() {
    if (fd_ >= 0) close(fd_);
    if (!done_) unlink(temporary_.c_str());
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) ThrowErrno(path_, "written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void Commit() {
    if (fsync(fd_) != 0 || close(std::exchange(fd_, -1)) != 0) ThrowErrno(path_, "synced");
    if (rename(temporary_.c_str(), path_.c_str()) != 0) ThrowErrno(path_, "renamed");
    done_ = true;
    const size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0) ThrowErrno(folder, "opened");
    const int error = fsync(folder_fd) == 0 ? 0 : errno;
    close(folder_fd);
    errno = error;
    if (error != 0) ThrowErrno(folder, "synced");
  }

 private:
  const std::string path_;
  const std::string temporary_;
  int fd_ = -1;
  bool done_ = false;
};

// The checksum of what a file says; the order in which it is added is part of it.
class Digest {
 public:
  explicit Digest(const Metadata& metadata) {
    for (const auto& [key, value] : metadata) {
      if (key == kChecksumKey) continue;
      AddText(key);
      AddText(value);
    }
  }

  // Before the tensor's bytes.
  void AddTensor(std::string_view name, std::string_view dtype, const std::vector<int64_t>& shape) {
    AddText(name);
    AddText(dtype);
    AddText(ShapeText(shape));
  }

  void AddBytes(std::span<const std::byte> bytes) {
    crc_ = Crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, crc_);
  }

  std::string Text() const {
    std::array<char, 9> digits;
    std::snprintf(digits.data(), digits.size(), "%08x", crc_);
    return digits.data();
  }

 private:
  // With its length, so that no letter can move from one text to the next.
  void AddText(std::string_view text) {
    const uint64_t length = text.size();
    AddBytes(std::as_bytes(std::span(&length, 1)));
    AddBytes(std::as_bytes(std::span(text)));
  }

  uint32_t crc_ = 0;
};

std::string ChecksumOf(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, &TensorToWrite::name);
  Digest digest(metadata);
  for (const TensorToWrite* tensor : order) {
    digest.AddTensor(tensor->name, tensor->dtype, tensor->shape);
    digest.AddBytes(tensor->bytes);
  }
  return digest.Text();
}

// Names and places of the tensors, padded so that they begin at a multiple of 8 bytes.
std::string MakeHeader(const Metadata& metadata, const std::vector<TensorToWrite>& tensors) {
  std::string json = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (json.back() != '{') json += ',';
    json += JsonString(key) + ':' + JsonString(value);
  }
  json += '}';
  uint64_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    const uint64_t end = begin + tensor.bytes.size();
    json += ',' + JsonString(tensor.name) + ":{\"dtype\":\"" + tensor.dtype +
            "\",\"shape\":" + ShapeText(tensor.shape) + ",\"data_offsets\":[" +
            std::to_string(begin) + ',' + std::to_string(end) + "]}";
    begin = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  return json;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    Fail("cannot be read: " + why);
  }
  try {
    if (!S_ISREG(info.st_mode)) Fail("is no file");
    size_ = static_cast<uint64_t>(info.st_size);
    uint64_t length = 0;
    if (size_ < kLengthBytes) Fail("is too short for a safetensors file");
    ReadAt(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kLargestHeader) {
      Fail("is no safetensors file: its header would have " + std::to_string(length) + " bytes");
    }
    if (length > size_ - kLengthBytes) Fail("is cut off in its header");
    data_start_ = kLengthBytes + length;
    std::string json(length, '\0');
    ReadAt(kLengthBytes, std::as_writable_bytes(std::span(json)));
    SafetensorsHeader header;
    try {
      header = ParseSafetensorsHeader(json);
    } catch (const std::runtime_error& error) {
      Fail(std::string("is no safetensors file: ") + error.what());
    }
    metadata_ = std::move(header.metadata);
    tensors_ = std::move(header.tensors);
    CheckLayout();
  } catch (...) {
    close(fd_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { close(fd_); }

void SafetensorsFile::CheckLayout() const {
  std::vector<std::pair<const Tensor*, const std::string*>> order;
  for (const auto& [name, tensor] : tensors_) {
    const uint64_t element = ElementSize(tensor.dtype);
    if (element == 0) Fail("has tensor " + name + " of unknown dtype " + tensor.dtype);
    uint64_t size = 0;
    if (!SizeOf(tensor, &size) || tensor.begin > tensor.end || tensor.end - tensor.begin != size) {
      Fail("has tensor " + name + " whose offsets do not fit " + tensor.dtype + " " +
           ShapeText(tensor.shape));
    }
    if (tensor.begin % element != 0) Fail("has tensor " + name + " at a misaligned offset");
    order.emplace_back(&tensor, &name);
  }
  std::ranges::sort(
      order, {}, [](const auto& entry) { return std::pair(entry.first->begin, entry.first->end); });
  uint64_t end = 0;
  for (const auto& [tensor, name] : order) {
    if (tensor->begin < end) Fail("has tensor " + *name + " over another one");
    if (tensor->begin > end) Fail("has a gap before tensor " + *name);
    end = tensor->end;
  }
  const uint64_t present = size_ - data_start_;
  if (present < end) {
    Fail("is cut off: " + std::to_string(end - present) + " bytes of its tensors are missing");
  }
  if (present > end) Fail("has " + std::to_string(present - end) + " bytes after its tensors");
}

const SafetensorsFile::Tensor* SafetensorsFile::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void SafetensorsFile::Read(std::string_view name, std::span<float> values) const {
  ReadExactly(name, "F32", std::as_writable_bytes(values));
}

void SafetensorsFile::Read(std::string_view name, std::span<double> values) const {
  ReadExactly(name, "F64", std::as_writable_bytes(values));
}

void SafetensorsFile::Read(std::string_view name, std::span<uint64_t> values) const {
  ReadExactly(name, "U64", std::as_writable_bytes(values));
}

void SafetensorsFile::ReadConverted(std::string_view name, std::span<float> values) const {
  const Tensor* tensor = Find(name);
  const std::string dtype = tensor == nullptr ? "F32" : tensor->dtype;
  if (dtype == "F64") {
    std::vector<double> wide(values.size());
    Read(name, wide);
    std::ranges::transform(wide, values.begin(), [](double x) { return static_cast<float>(x); });
  } else if (dtype == "F16" || dtype == "BF16") {
    std::vector<uint16_t> narrow(values.size());
    ReadExactly(name, dtype, std::as_writable_bytes(std::span(narrow)));
    std::ranges::transform(narrow, values.begin(), dtype == "F16" ? FromHalf : FromBfloat16);
  } else {
    Read(name, values);
  }
}

void SafetensorsFile::VerifyChecksum() const {
  const auto written = metadata_.find(kChecksumKey);
  if (written == metadata_.end()) return;
  Digest digest(metadata_);
  std::vector<std::byte> buffer(kPiece);
  for (const auto& [name, tensor] : tensors_) {
    digest.AddTensor(name, tensor.dtype, tensor.shape);
    for (uint64_t at = tensor.begin; at < tensor.end; at += kPiece) {
      const auto piece = std::span(buffer).first(std::min<uint64_t>(kPiece, tensor.end - at));
      ReadAt(data_start_ + at, piece);
      digest.AddBytes(piece);
    }
  }
  const std::string present = digest.Text();
  if (present == written->second) return;
  Fail("is damaged: its checksum is " + present + ", and " + written->second + " was written");
}

void SafetensorsFile::ReadExactly(std::string_view name, std::string_view dtype,
                                  std::span<std::byte> bytes) const {
  const Tensor* tensor = Find(name);
  if (tensor == nullptr) Fail("has no tensor " + std::string(name));
  if (tensor->dtype != dtype) {
    Fail("has tensor " + std::string(name) + " as " + tensor->dtype + ", not " +
         std::string(dtype));
  }
  if (tensor->end - tensor->begin != bytes.size()) {
    Fail("has tensor " + std::string(name) + " of shape " + ShapeText(tensor->shape) + ", " +
         std::to_string(tensor->end - tensor->begin) + " bytes, not " +
         std::to_string(bytes.size()));
  }
  ReadAt(data_start_ + tensor->begin, bytes);
}

void SafetensorsFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) Fail("became shorter while it was read");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

void SafetensorsFile::Fail(const std::string& what) const {
  throw UnreadableFile(path_ + " " + what);
}

TensorToWrite::TensorToWrite(std::string name, std::vector<int64_t> shape,
                             std::span<const float> values)
    : name(std::move(name)), dtype("F32"), shape(std::move(shape)), bytes(std::as_bytes(values)) {}

TensorToWrite::TensorToWrite(std::string name, std::vector<int64_t> shape,
                             std::span<const double> values)
    : name(std::move(name)), dtype("F64"), shape(std::move(shape)), bytes(std::as_bytes(values)) {}

TensorToWrite::TensorToWrite(std::string name, std::vector<int64_t> shape,
                             std::span<const uint64_t> values)
    : name(std::move(name)), dtype("U64"), shape(std::move(shape)), bytes(std::as_bytes(values)) {}

int64_t WriteSafetensors(const std::string& path, const Metadata& metadata,
                         std::vector<TensorToWrite> tensors) {
  // Widest elements first, so that every tensor is aligned.
  std::ranges::stable_sort(tensors, std::greater{},
                           [](const TensorToWrite& tensor) { return ElementSize(tensor.dtype); });
  Metadata signed_metadata = metadata;
  signed_metadata.insert_or_assign(std::string(kChecksumKey), ChecksumOf(metadata, tensors));
  const std::string header = MakeHeader(signed_metadata, tensors);
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(&length, 1)));
  file.Write(std::as_bytes(std::span(header)));
  uint64_t size = kLengthBytes + length;
  for (const TensorToWrite& tensor : tensors) {
    file.Write(tensor.bytes);
    size += tensor.bytes.size();
  }
  file.Commit();
  return static_cast<int64_t>(size);
}

}  // namespace normlab::trainer
