"""What can be refused is refused here, before a Spark query starts, with a word on what to do."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.predicates import Predicate
from streamjoin.spark.layout import EMITS

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def check_frames(query: sj.Query, streams: Mapping[str, Any], what: str) -> None:
    """Refuse names that are no streams and values that are no DataFrames."""
    if not isinstance(streams, Mapping):
        raise sj.QueryError(f"{what}: expected a dict from stream to DataFrame, got {streams!r}")
    for name, frame in streams.items():
        if name not in query.stream_names:
            raise sj.QueryError(f"{what}: expected the streams {list(query.stream_names)}, got {name!r}")
        if not (isinstance(frame, DataFrame) or (what == "punctuations" and isinstance(frame, str))):
            or_text = " or a SQL condition" if what == "punctuations" else ""
            raise sj.QueryError(f"{what}, stream {name!r}: expected a DataFrame{or_text}, got {frame!r}")


def check_all_streams(query: sj.Query, streams: Mapping[str, DataFrame]) -> None:
    """Refuse a stream without rows."""
    for name in query.stream_names:
        if name not in streams:
            raise sj.QueryError(f"streams: expected a DataFrame of stream {name!r}, got {sorted(streams)}")


def check_columns(stream: sj.Stream, frame: DataFrame) -> None:
    """Refuse a DataFrame without the time column, or with names that would be mixed up."""
    if stream.time not in frame.columns:
        raise sj.QueryError(
            f"stream {stream.name!r}: expected a time column {stream.time!r}, got {frame.columns}"
        )
    for column in frame.columns:
        if column.startswith("_") and column in ("_bucket", "_punctuation"):
            raise sj.QueryError(
                f"stream {stream.name!r}: the column name {column!r} is used inside; rename it"
            )


def check_same_kind(streams: Mapping[str, DataFrame], punctuations: Mapping[str, Any]) -> bool:
    """Return whether the DataFrames are streaming; refuse a mixture."""
    kinds = {f"stream {name!r}": frame.isStreaming for name, frame in streams.items()}
    kinds |= {
        f"punctuations of {name!r}": frame.isStreaming
        for name, frame in punctuations.items()
        if isinstance(frame, DataFrame)
    }
    if len(set(kinds.values())) > 1:
        streaming = [name for name, is_streaming in kinds.items() if is_streaming]
        static = [name for name, is_streaming in kinds.items() if not is_streaming]
        raise sj.QueryError(
            "expected all DataFrames streaming or all static: use readStream for all or read for all; "
            f"got streaming {', '.join(streaming)} and static {', '.join(static)}"
        )
    return any(kinds.values())


def check_options(emit: str, buckets: int | None, aggregates: tuple[Any, ...]) -> None:
    """Refuse options outside their choices."""
    if emit not in EMITS:
        raise sj.QueryError(f"emit: expected one of {list(EMITS)}, got {emit!r}")
    if aggregates and emit != "rows":
        raise sj.QueryError(f"emit: with aggregates expected 'rows' (the complete groups), got {emit!r}")
    if buckets is not None and (not isinstance(buckets, int) or isinstance(buckets, bool) or buckets < 1):
        raise sj.QueryError(f"buckets: expected a positive integer, got {buckets!r}")


def check_streaming(spark: SparkSession, query: sj.Query) -> None:
    """Refuse what cannot run, or could not go on from its checkpoint."""
    provider = spark.conf.get(PROVIDER, "")
    if provider is None or not provider.endswith("RocksDBStateStoreProvider"):
        raise sj.QueryError(
            "the state store provider must be RocksDB: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r}); got {provider!r}"
        )
    check_packages()
    if getattr(query.disorder, "idle_after_ns", None) is not None and query.disorder.idle_clock == "wall":
        raise sj.QueryError(
            "disorder: by the clock on the wall a restart could not repeat what was done; expected "
            f"idle_clock='event' in a streaming join, got {query.disorder!r}"
        )
    if callable(query.where) and not isinstance(query.where, Predicate):
        raise sj.QueryError(
            "where: a function cannot be recognised after a restart; expected text, band() or distance() "
            f"in a streaming join, got {query.where!r}"
        )


def check_environment() -> None:
    """Refuse a machine on which streaming joins cannot run: call it before a SparkSession is made.

    QueryError says what is missing, Java or a package, and how to install it.

    >>> check_environment()
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise sj.QueryError(
            "Spark needs Java 17 (Debian: apt-get install openjdk-17-jre-headless; elsewhere set JAVA_HOME): "
            f"found no java {where}"
        )
    check_packages()


def check_packages() -> None:
    """Refuse to start without the packages that Spark's state API needs in Python."""
    for package, need in (("protobuf", "protobuf"), ("pandas", "pandas below 3")):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            raise sj.QueryError(
                f"a streaming join needs {need}: pip install 'streamjoin[spark]'; it is not installed"
            ) from None
        if package == "pandas" and int(version.split(".")[0]) >= 3:
            raise sj.QueryError(
                f"a streaming join needs pandas below 3: pip install 'pandas<3'; got {version}"
            )
