"""streamjoin on Spark: `join` for streaming and static DataFrames, the source `nexmark`, ways to watch.

>>> from streamjoin import spark as sjs
>>> callable(sjs.join)
True
"""

from pyspark.sql import SparkSession

from streamjoin.spark.checks import check_environment
from streamjoin.spark.join import explain, join
from streamjoin.spark.nexmark import NexmarkSource
from streamjoin.spark.watch import JoinListener, state_stats


def register(spark: SparkSession) -> None:
    """Make the source `nexmark` known to a session: `spark.readStream.format("nexmark")`.

    >>> register(spark)
    >>> spark.read.format("nexmark").option("stream", "auction").option("events", 1000).load().count()
    60
    """
    spark.dataSource.register(NexmarkSource)


__all__ = ["JoinListener", "check_environment", "explain", "join", "register", "state_stats"]
