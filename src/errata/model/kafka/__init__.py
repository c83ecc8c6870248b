"""Topics of Kafka as they are declared, and the offsets that runs read. Pure."""
