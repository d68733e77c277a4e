// The safetensors file format (huggingface.co/docs/safetensors), read strictly and written whole.
//
//   8 bytes   N, little-endian
//   N bytes   JSON: {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
//             "data_offsets": [begin, end]}, ...}, padded with spaces
//   the rest  the tensors, row-major and little-endian; offsets count from here, without gaps
//
// The format has no checksum. Files written here carry one in their metadata, normlab_crc32c: eight
// hexadecimal digits, CRC-32C of the rest of the metadata and of every tensor's name, dtype, shape
// and bytes, in the order of the names (SafetensorsFile::VerifyChecksum).
#ifndef NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_H_
#define NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::trainer {

// It is not there, cannot be read, or is not such a file, whole and with what was asked for.
class UnreadableFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An open file. Tensors are read when asked for, so that a large file is never in memory twice. All
// errors are UnreadableFile and begin with the file's name. Not thread-safe.
class SafetensorsFile {
 public:
  using Metadata = std::map<std::string, std::string, std::less<>>;
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    uint64_t begin = 0;  // in the data
    uint64_t end = 0;
  };

  // Reads and checks the header. Refuses a header above 100 MB, text that is not the JSON above,
  // names that come twice, unknown dtypes, and tensors that overlap, leave gaps, are not aligned to
  // their own elements, have another size than dtype and shape say, or do not end with the file.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

  // Null if there is none.
  const Tensor* Find(std::string_view name) const;

  // A tensor of exactly this dtype ("F32", "F64", "U64") and as many elements as `values` has.
  void Read(std::string_view name, std::span<float> values) const;
  void Read(std::string_view name, std::span<double> values) const;
  void Read(std::string_view name, std::span<uint64_t> values) const;

  // An F64, F32, F16 or BF16 tensor as floats.
  void ReadConverted(std::string_view name, std::span<float> values) const;

  // Reads the whole file, and refuses one that carries a checksum of something else: a bit turned
  // over on the disk. Files of other programs carry none and pass.
  void VerifyChecksum() const;

 private:
  void ReadExactly(std::string_view name, std::string_view dtype, std::span<std::byte> bytes) const;
  void ReadAt(uint64_t offset, std::span<std::byte> bytes) const;
  void CheckLayout() const;
  [[noreturn]] void Fail(const std::string& what) const;

  const std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;        // of the file
  uint64_t data_start_ = 0;  // offset of the tensors in it
  Metadata metadata_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// A tensor to be written; refers to the caller's memory.
struct TensorToWrite {
  TensorToWrite(std::string name, std::vector<int64_t> shape, std::span<const float> values);
  TensorToWrite(std::string name, std::vector<int64_t> shape, std::span<const double> values);
  TensorToWrite(std::string name, std::vector<int64_t> shape, std::span<const uint64_t> values);

  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// Replaces `path` by a file with these tensors: written beside it with mode 0600, synced, renamed,
// and the folder synced, so that a reader (also after a power cut) finds the old file or the new
// one. Adds normlab_crc32c to the metadata. Returns the file's size. Throws std::runtime_error; the
// old file is then untouched.
int64_t WriteSafetensors(const std::string& path, const SafetensorsFile::Metadata& metadata,
                         std::vector<TensorToWrite> tensors);

}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_TRAIN_SAFETENSORS_H_
