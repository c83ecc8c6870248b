"""Build the sources that inputs read: recordings, topics of Kafka, change logs. Pure."""
