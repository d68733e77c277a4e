// The spool of an attempt: a preallocated, memory-mapped ring of numbered records. The trainer
// appends what it measured with a memory write; the pages belong to the kernel, so that a record is
// safe from kill -9 of the trainer and of the server the moment Append returns, and no disk space
// is needed later. Records leave the ring when the server has acknowledged them.
//
//   Spool::Create(path, Spool::kDefaultCapacity);                           // server, before start
//   auto spool = Spool::Open(path);                                         // trainer
//   (*spool)->Append(bytes);                                                // its training thread
//   (*spool)->Read(&cursor, limits, [](uint64_t sequence, std::string_view bytes) { ... });
//   (*spool)->Ack(sequence);                                                // its link thread
//
//   auto reader = SpoolReader::Open(path);                                  // server, trainer dead
//   while (reader->Next()) Store(reader->sequence(), reader->bytes());
//
// File format, version 1; numbers are little-endian.
//   offset  0  8 bytes   "NLSPOOL\n"
//           8  uint32    version, 1
//          12  uint32    bytes before the ring, 65536
//          16  uint64    capacity of the ring in bytes, a multiple of 65536
//          24  uint32    CRC-32C of the 24 bytes before
//          64  uint64    head: position after the last record
//         128  uint64    tail: position of the last acknowledged record
//       65536  the ring
// A position counts bytes ever appended; it lies at ring offset position % capacity. A record is
//   uint64 sequence, uint32 length, uint32 CRC-32C of (sequence, length, payload), payload,
// padded with zeroes to a multiple of 8, and may run over the ring's end to its start. Sequences
// rise by one. A new ring holds one empty record of sequence 0 with tail at it; as the last
// acknowledged record always stays, head and tail, each written in one store, say everything.
// Append stores head after the whole record, so a killed writer leaves no half record in
// [tail, head). Only a machine that went down can: its pages reach the disk in any order.
#ifndef NORMLAB_SERVER_BASE_SPOOL_H_
#define NORMLAB_SERVER_BASE_SPOOL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"

namespace normlab {

// The living spool. One thread may append (the producer) while another reads and one acknowledges;
// Interrupt, Wake, WaitUntilAcked and the counters are for any thread.
class Spool {
 public:
  static constexpr uint64_t kDefaultCapacity = 8 << 20;
  static constexpr uint64_t kCapacityUnit = 64 << 10;
  // Kept free by ordinary appends, so that the last record of a stopped run fits in a full ring.
  static constexpr uint64_t kReserve = 4 << 10;
  // With a full batch before it, a record still fits in a gRPC message of the usual 4 MiB.
  static constexpr uint64_t kMaxRecordBytes = 1 << 20;

  // Where a reader stands: after record `sequence`, which lies at `position`.
  struct Cursor {
    uint64_t sequence = 0;
    uint64_t position = 0;
  };
  struct Limits {
    size_t records = 4096;
    size_t bytes = 1 << 20;  // reached, not exceeded by more than one record
  };

  // Makes the file (0600) with all its disk space. RESOURCE_EXHAUSTED when there is none left,
  // ALREADY_EXISTS when there is such a file.
  static absl::Status Create(const std::filesystem::path& path, uint64_t capacity);

  // Maps an existing spool to go on with it. FAILED_PRECONDITION while another process or object
  // has it open; DATA_LOSS, saying what is wrong, when it is no sound spool.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::filesystem::path& path);

  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Producer. Adds a record and returns its sequence; waits while the ring is full. CANCELLED when
  // it is full and Interrupt was called; INVALID_ARGUMENT for more than max_record_bytes().
  absl::StatusOr<uint64_t> Append(std::string_view bytes);
  // Producer. The same, but RESOURCE_EXHAUSTED at once when the ring is full.
  absl::StatusOr<uint64_t> TryAppend(std::string_view bytes);
  // Producer. TryAppend that may use the reserve.
  absl::StatusOr<uint64_t> AppendLast(std::string_view bytes);

  // Ends the waiting of Append, now and for good.
  void Interrupt();

  // Reader. Standing after the last acknowledged record.
  Cursor AckedCursor() const;
  // Reader. Passes on records after `cursor` and moves it; returns how many. The bytes stay valid
  // until their record is acknowledged.
  size_t Read(Cursor* cursor, Limits limits,
              absl::FunctionRef<void(uint64_t sequence, std::string_view bytes)> take) const;
  // Reader. Waits until there is a record after `cursor` (true), or `timeout` has passed or Wake
  // was called since the last wait (false).
  bool WaitForRecord(const Cursor& cursor, std::chrono::nanoseconds timeout);
  void Wake();

  // Frees the records up to `sequence`; an older one than acknowledged does nothing.
  // INVALID_ARGUMENT for one that was never appended.
  absl::Status Ack(uint64_t sequence);
  // True as soon as `sequence` is acknowledged, false when `timeout` passed before.
  bool WaitUntilAcked(uint64_t sequence, std::chrono::nanoseconds timeout);

  uint64_t last_sequence() const { return last_sequence_.load(std::memory_order_acquire); }
  uint64_t acked_sequence() const { return acked_sequence_.load(std::memory_order_acquire); }
  size_t max_record_bytes() const;

 private:
  struct Control;  // the first bytes of the file

  Spool(int fd, char* mapping, size_t mapped_bytes, uint64_t capacity);
  absl::Status Recover();
  char* At(uint64_t position) const;
  bool Fits(uint64_t record_bytes, uint64_t reserve) const;
  absl::Status CheckLength(std::string_view bytes) const;
  uint64_t Write(std::string_view bytes);

  const int fd_;
  char* const mapping_;  // control block, ring, and the ring once more: no record is ever split
  const size_t mapped_bytes_;
  const uint64_t capacity_;
  Control* const control_;
  uint64_t head_ = 0;  // the producer's copy

  std::atomic<uint64_t> last_sequence_ = 0;
  std::atomic<uint64_t> acked_sequence_ = 0;

  // Only sleepers use the mutex. Each says that it sleeps, then looks again, and the other side
  // publishes, then looks for sleepers: in a sequentially consistent order no one is missed.
  Mutex mutex_;
  CondVar record_appended_;
  CondVar record_acked_;
  std::atomic<bool> reader_sleeps_ = false;
  std::atomic<int> ack_sleepers_ = 0;
  std::atomic<bool> interrupted_ = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

// Reads out a spool whose writer is dead, from a copy in memory: nothing that happens to the file
// can crash the reader. Any one thread.
class SpoolReader {
 public:
  // DATA_LOSS, saying what is wrong, when this is no spool; NOT_FOUND when there is no file.
  static absl::StatusOr<SpoolReader> Open(const std::filesystem::path& path);

  // Goes to the next record, at first the oldest not acknowledged; false at the end.
  bool Next();
  uint64_t sequence() const { return sequence_; }
  std::string_view bytes() const { return bytes_; }

  // After Next said false: OK, or DATA_LOSS with the record at which reading had to end.
  const absl::Status& status() const { return status_; }
  // After Next said false: the very last record was only half on disk and is left out.
  bool torn() const { return torn_; }

 private:
  friend class Spool;
  SpoolReader(std::string_view window, uint64_t position, std::string name);
  absl::Status ReadFirst();
  bool ReadRecord();
  bool Fail(const std::string& what);

  std::shared_ptr<const std::string> copy_;  // behind `window_`, when it is ours
  std::string_view window_;                  // [position of the next record, head)
  uint64_t position_;
  std::string name_;
  uint64_t sequence_ = 0;
  std::string_view bytes_;
  absl::Status status_;
  bool torn_ = false;
};

}  // namespace normlab

#endif  // NORMLAB_SERVER_BASE_SPOOL_H_
