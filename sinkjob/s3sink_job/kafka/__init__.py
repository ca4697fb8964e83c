"""What the driver asks Kafka, through the one client there is: the Java one that Spark brings."""
