// The docstrings of _core, apart so that the binding tables stay tables.

#pragma once

namespace streamjoin::bindings::doc {

inline constexpr const char* kOperator =
    "The join of two streams on codes and row references. Sides are 0 (left) and 1 (right).";
inline constexpr const char* kPush =
    "Joins the rows of a batch. keys: one (values, offsets, valid) per join attribute. predicate: called "
    "with candidate rows, returns "
    "a mask. punctuations: (before, times, keys), promises of keys in front of rows; the smallest time: none "
    "is known.";
inline constexpr const char* kPunctuate =
    "No row that matches one of the patterns comes any more. A pattern has per attribute None (*), (value,) "
    "for a constant, (low, high) for a range whose None "
    "is open. time None: the stream's clock.";
inline constexpr const char* kAdvance = "No row of the side at or before the time comes any more.";
inline constexpr const char* kFinish = "Both streams have ended.";
inline constexpr const char* kTakeEmptyBatches =
    "Numbers of batches whose last live row has gone since the last call.";
inline constexpr const char* kRowsOfBatch = "Live rows of a batch.";
inline constexpr const char* kLiveRows = "Live rows of a side.";
inline constexpr const char* kMoveRowsTo =
    "Moves all live rows of a side to one batch; returns where they were, as (batch, row).";
inline constexpr const char* kStats = "Counters and sizes, per side where that makes sense.";
inline constexpr const char* kLookAtClock =
    "Takes notice of the wall clock: streams that brought nothing for long may be idle by it.";
inline constexpr const char* kTookBatch =
    "Whether the rows of the last push wait here although it failed; they join in a later call.";
inline constexpr const char* kDisorder =
    "Slack, recall and sizes of what waits; None where streams come in order.";
inline constexpr const char* kDisorderOptions =
    "How rows out of order are treated: policy 'fixed', 'largest_delay' or 'recall'.";
inline constexpr const char* kAdaptiveWindow =
    "ADWIN, as the statistics of delays use it: a window that is cut when its values change.";
inline constexpr const char* kAdaptiveWindowAdd = "Adds a value of 0 to 1; true if the window was cut.";
inline constexpr const char* kAdaptiveWindowWidth = "How many values it holds.";
inline constexpr const char* kAdaptiveWindowMean = "Of the values it holds.";
inline constexpr const char* kAdaptiveWindowVariance = "Of the values it holds.";
inline constexpr const char* kClock =
    "The earliest time that a row of the side may still have; None before the first.";
inline constexpr const char* kValidate = "The first broken invariant, or an empty string.";
inline constexpr const char* kSave = "Everything but the payload, as bytes.";
inline constexpr const char* kLoad = "Replaces the state of an operator that was made with the same options.";
inline constexpr const char* kOutput = "What one call produced.";
inline constexpr const char* kRows =
    "Result rows: left batch, left row, right batch, right row; all ones where a side is missing.";
inline constexpr const char* kLate = "Late rows: (side, batch, row, late_by) as arrays.";
inline constexpr const char* kViolations = "Violating rows: (side, batch, row, late_by) as arrays.";
inline constexpr const char* kPunctuations =
    "Output punctuations: (kinds, times, untils, attributes), where each attribute is three columns "
    "(constant, low, high), and a column "
    "is (values, offsets, valid).";
inline constexpr const char* kPayload =
    "The addresses of a stream's stored columns, by batch, and the gathering of result columns.";
inline constexpr const char* kPut =
    "Stores a batch: (values, offsets, validity, offset) per column, as addresses; 0 where there is none.";
inline constexpr const char* kDrop = "Forgets a batch.";
inline constexpr const char* kGather =
    "A result column: (values, offsets, validity, null_count) as Arrow lays it out.";
inline constexpr const char* kRefused =
    "A batch refused by an error policy: (why, row, clock). Nothing has changed.";
inline constexpr const char* kDamaged = "Bytes that are no snapshot.";
inline constexpr const char* kMultiOperator =
    "The join of m streams on codes and row references. Streams are numbered from 0.";
inline constexpr const char* kMultiPush =
    "Joins the rows of a batch. keys: per attribute of the stream its columns, each (values, offsets, "
    "valid). "
    "values: (numbers, valid) per value slot of the stream.";
inline constexpr const char* kMultiPunctuate =
    "No row of the stream that matches comes any more. Patterns as of BinaryOperator, one per attribute of "
    "the stream; None alone ends it. Without purge, patterns of values change nothing.";
inline constexpr const char* kMultiAdvance = "No row of the stream at or before the time comes any more.";
inline constexpr const char* kMultiFinish = "All streams have ended.";
inline constexpr const char* kMultiLiveRows = "Live rows of a stream.";
inline constexpr const char* kMultiMoveRowsTo =
    "Moves all live rows of a stream to one batch; returns where they were, as (batch, row).";
inline constexpr const char* kMultiStats =
    "Counters and sizes, per stream where that makes sense; probing_order: per stream, the order in which "
    "its "
    "rows meet the others.";
inline constexpr const char* kMultiClock =
    "The earliest time that a row of the stream may still have; None before the first.";
inline constexpr const char* kMultiRehearse =
    "The rows that push would give. Raises what it would raise; changes nothing.";
inline constexpr const char* kMultiHorizon =
    "The earliest time of a row of the stream in a result to come; None where nothing is known of it.";
inline constexpr const char* kMultiRows = "Result rows: per result and stream, batch and row.";

}  // namespace streamjoin::bindings::doc
