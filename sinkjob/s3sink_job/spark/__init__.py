"""The Spark session, executors in a cluster, and the daemon that starts Python workers."""
