#include "server/base/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/base/spool_format.h"

namespace normlab {
namespace {

using spool_format::kControlBytes;
using spool_format::RecordBytes;
using spool_format::RecordHeader;

using Word = std::atomic_ref<uint64_t>;
static_assert(Word::is_always_lock_free, "a lock would not survive kill -9");

absl::Status Errno(int error, const char* what, const std::filesystem::path& path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path.string()));
}

// The file with its control block and the record of sequence 0, no bigger yet than that.
bool WriteBeginning(int fd, uint64_t capacity) {
  std::string control(kControlBytes + sizeof(RecordHeader), '\0');
  const spool_format::Fixed fixed = spool_format::MakeFixed(capacity);
  std::memcpy(control.data(), &fixed, sizeof(fixed));
  const uint64_t head = sizeof(RecordHeader);
  std::memcpy(control.data() + spool_format::kHeadOffset, &head, 8);
  const RecordHeader record = {0, 0, spool_format::RecordChecksum(0, "")};
  std::memcpy(control.data() + kControlBytes, &record, sizeof(record));
  return pwrite(fd, control.data(), control.size(), 0) == static_cast<ssize_t>(control.size());
}

// Maps control block and ring, and behind them the ring again: what runs over the ring's end goes
// on at its start by address alone.
char* MapTwice(int fd, uint64_t capacity) {
  const size_t bytes = kControlBytes + 2 * capacity;
  void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(base);
  const int access = PROT_READ | PROT_WRITE;
  if (mmap(start, kControlBytes + capacity, access, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
      mmap(start + kControlBytes + capacity, capacity, access, MAP_SHARED | MAP_FIXED, fd,
           kControlBytes) == MAP_FAILED) {
    munmap(base, bytes);
    return nullptr;
  }
  return start;
}

}  // namespace

struct Spool::Control {
  spool_format::Fixed fixed;
  alignas(64) uint64_t head;  // on cache lines of their own: two threads write them
  alignas(64) uint64_t tail;
};

absl::Status Spool::Create(const std::filesystem::path& path, uint64_t capacity) {
  if (capacity == 0 || capacity % kCapacityUnit != 0 || capacity > spool_format::kMaxCapacity) {
    return absl::InvalidArgumentError(
        "a spool's capacity is a multiple of 65536 bytes, and at most 1 GiB");
  }
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return Errno(errno, "cannot make the spool", path);
  int error = posix_fallocate(fd, 0, static_cast<off_t>(kControlBytes + capacity));
  if (error == 0 && !WriteBeginning(fd, capacity)) error = errno;
  close(fd);
  if (error == 0) return absl::OkStatus();
  unlink(path.c_str());
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for the ", (kControlBytes + capacity) >> 10, " KiB of the spool ", path.string()));
  }
  return Errno(error, "cannot allocate the spool", path);
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return Errno(errno, "cannot open the spool", path);
  absl::Cleanup closer = [fd] { close(fd); };
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the spool ", path.string(), " is in use by another process"));
  }
  struct stat info;
  spool_format::Fixed fixed;
  uint64_t ends[9];  // head is the first word, tail the last
  if (fstat(fd, &info) != 0) return Errno(errno, "cannot read the spool", path);
  if (pread(fd, &fixed, sizeof(fixed), 0) != sizeof(fixed) ||
      pread(fd, ends, sizeof(ends), spool_format::kHeadOffset) != sizeof(ends)) {
    return absl::DataLossError(absl::StrCat("spool ", path.string(), ": it is too short"));
  }
  const std::string fault =
      spool_format::Fault(fixed, static_cast<uint64_t>(info.st_size), ends[0], ends[8]);
  if (!fault.empty()) {
    return absl::DataLossError(absl::StrCat("spool ", path.string(), ": ", fault));
  }
  char* const mapping = MapTwice(fd, fixed.capacity);
  if (mapping == nullptr) return Errno(errno, "cannot map the spool", path);
  std::move(closer).Cancel();
  std::unique_ptr<Spool> spool(
      new Spool(fd, mapping, kControlBytes + 2 * fixed.capacity, fixed.capacity));
  if (absl::Status status = spool->Recover(); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("spool ", path.string(), ": ", status.message()));
  }
  return spool;
}

Spool::Spool(int fd, char* mapping, size_t mapped_bytes, uint64_t capacity)
    : fd_(fd),
      mapping_(mapping),
      mapped_bytes_(mapped_bytes),
      capacity_(capacity),
      control_(reinterpret_cast<Control*>(mapping)) {
  static_assert(offsetof(Control, head) == spool_format::kHeadOffset);
  static_assert(offsetof(Control, tail) == spool_format::kTailOffset);
}

Spool::~Spool() {
  munmap(mapping_, mapped_bytes_);
  close(fd_);  // and with it the lock
}

// Finds the last sequence. Appending goes on after the last sound record.
absl::Status Spool::Recover() {
  const uint64_t tail = control_->tail;
  head_ = control_->head;
  SpoolReader reader({At(tail), head_ - tail}, tail, "");
  if (absl::Status status = reader.ReadFirst(); !status.ok()) return status;
  acked_sequence_ = reader.sequence();
  uint64_t sound = tail + RecordBytes(reader.bytes().size());
  while (reader.Next()) sound += RecordBytes(reader.bytes().size());
  if (!reader.status().ok()) return reader.status();
  last_sequence_ = reader.sequence();
  head_ = sound;  // before a torn last record
  Word(control_->head).store(head_);
  return absl::OkStatus();
}

char* Spool::At(uint64_t position) const { return mapping_ + kControlBytes + position % capacity_; }

size_t Spool::max_record_bytes() const {
  // Two of them, the last acknowledged and the next, fit at once.
  return std::min(kMaxRecordBytes, (capacity_ - kReserve) / 2 - sizeof(RecordHeader) - 8);
}

absl::Status Spool::CheckLength(std::string_view bytes) const {
  if (bytes.size() <= max_record_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a record of ", bytes.size(),
                                                 " bytes is too large for its spool, which takes ",
                                                 max_record_bytes()));
}

bool Spool::Fits(uint64_t record_bytes, uint64_t reserve) const {
  return head_ + record_bytes - Word(control_->tail).load() + reserve <= capacity_;
}

uint64_t Spool::Write(std::string_view bytes) {
  const uint64_t sequence = last_sequence_.load(std::memory_order_relaxed) + 1;
  const RecordHeader header = {sequence, static_cast<uint32_t>(bytes.size()),
                               spool_format::RecordChecksum(sequence, bytes)};
  char* const at = At(head_);
  const uint64_t size = RecordBytes(bytes.size());
  std::memset(at + size - 8, 0, 8);  // the padding
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), bytes.data(), bytes.size());
  head_ += size;
  Word(control_->head).store(head_, std::memory_order_release);  // from here on the record exists
  last_sequence_.store(sequence);
  if (reader_sleeps_.load()) {
    MutexLock lock(mutex_);
    record_appended_.NotifyOne();
  }
  return sequence;
}

absl::StatusOr<uint64_t> Spool::TryAppend(std::string_view bytes) {
  if (absl::Status status = CheckLength(bytes); !status.ok()) return status;
  if (!Fits(RecordBytes(bytes.size()), kReserve)) {
    return absl::ResourceExhaustedError("the spool is full of unacknowledged records");
  }
  return Write(bytes);
}

absl::StatusOr<uint64_t> Spool::AppendLast(std::string_view bytes) {
  if (absl::Status status = CheckLength(bytes); !status.ok()) return status;
  if (!Fits(RecordBytes(bytes.size()), 0)) {
    return absl::ResourceExhaustedError("the spool is full to the last byte");
  }
  return Write(bytes);
}

absl::StatusOr<uint64_t> Spool::Append(std::string_view bytes) {
  if (absl::Status status = CheckLength(bytes); !status.ok()) return status;
  const uint64_t size = RecordBytes(bytes.size());
  if (!Fits(size, kReserve)) {
    MutexLock lock(mutex_);
    ++ack_sleepers_;
    while (!Fits(size, kReserve) && !interrupted_) record_acked_.Wait(mutex_);
    --ack_sleepers_;
    if (!Fits(size, kReserve)) {
      return absl::CancelledError("the spool is full and waiting for the server was given up");
    }
  }
  return Write(bytes);
}

void Spool::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  record_acked_.NotifyAll();
}

Spool::Cursor Spool::AckedCursor() const {
  const uint64_t tail = Word(control_->tail).load();
  RecordHeader header;
  std::memcpy(&header, At(tail), sizeof(header));
  return {header.sequence, tail};
}

size_t Spool::Read(Cursor* cursor, Limits limits,
                   absl::FunctionRef<void(uint64_t, std::string_view)> take) const {
  const uint64_t head = Word(control_->head).load();
  RecordHeader header;
  std::memcpy(&header, At(cursor->position), sizeof(header));
  size_t count = 0;
  for (size_t bytes = 0; count < limits.records && bytes < limits.bytes; ++count) {
    const uint64_t next = cursor->position + RecordBytes(header.length);
    if (next >= head) break;
    std::memcpy(&header, At(next), sizeof(header));
    take(header.sequence, {At(next) + sizeof(header), header.length});
    *cursor = {header.sequence, next};
    bytes += header.length;
  }
  return count;
}

bool Spool::WaitForRecord(const Cursor& cursor, std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] { return deadline - std::chrono::steady_clock::now(); };
  MutexLock lock(mutex_);
  reader_sleeps_ = true;
  while (last_sequence_.load() <= cursor.sequence && !woken_ && left().count() > 0) {
    record_appended_.WaitFor(mutex_, left());
  }
  reader_sleeps_ = false;
  const bool record = last_sequence_.load() > cursor.sequence && !woken_;
  woken_ = false;
  return record;
}

void Spool::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  record_appended_.NotifyOne();
}

absl::Status Spool::Ack(uint64_t sequence) {
  // Not last_sequence(), which the producer counts up a moment after a record can be read.
  const uint64_t head = Word(control_->head).load();
  uint64_t position = control_->tail;
  RecordHeader header;
  std::memcpy(&header, At(position), sizeof(header));
  while (header.sequence < sequence) {
    position += RecordBytes(header.length);
    if (position >= head) {
      return absl::InvalidArgumentError(absl::StrCat(
          "record ", sequence, " was acknowledged but only ", header.sequence, " exist"));
    }
    std::memcpy(&header, At(position), sizeof(header));
  }
  if (position == control_->tail) return absl::OkStatus();
  acked_sequence_.store(header.sequence);
  Word(control_->tail).store(position);  // from here on the producer may write over them
  if (ack_sleepers_.load() > 0) {
    MutexLock lock(mutex_);
    record_acked_.NotifyAll();
  }
  return absl::OkStatus();
}

bool Spool::WaitUntilAcked(uint64_t sequence, std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] { return deadline - std::chrono::steady_clock::now(); };
  MutexLock lock(mutex_);
  ++ack_sleepers_;
  while (acked_sequence_.load() < sequence && left().count() > 0) {
    record_acked_.WaitFor(mutex_, left());
  }
  --ack_sleepers_;
  return acked_sequence_.load() >= sequence;
}

}  // namespace normlab
