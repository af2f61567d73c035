"""What can go wrong, by whose fault.

    StreamJoinError
      QueryError (ValueError)          the declaration makes no sense
        UnsafeQueryError               it makes sense, but its state could grow for ever
      DataError (ValueError)           a batch does not fit what was declared
        PunctuationViolation           a row came after a promise that it would not
        LateRowError                   a row came behind its stream's clock
      SnapshotError                    a snapshot is damaged, or of a newer version

Messages name the stream and the column, say what was expected, and end with what came.
"""


class StreamJoinError(Exception):
    """Base of every error that streamjoin raises on purpose."""


class QueryError(StreamJoinError, ValueError):
    """The declaration of a query makes no sense."""


class UnsafeQueryError(QueryError):
    """The query is well formed, but nothing bounds its state."""


class DataError(StreamJoinError, ValueError):
    """The data does not fit what the query and the schemas declare."""


class PunctuationViolation(DataError):
    """A row matches a punctuation that its own stream sent before it."""


class LateRowError(DataError):
    """A row is older than the clock of its stream."""


class SnapshotError(StreamJoinError):
    """A snapshot cannot be restored: it is damaged, or of a newer version."""
