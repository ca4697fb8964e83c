"""A sink with a real broker and a real store, and faults at random times, chosen by a seed.

    make chaos SEED=7 MINUTES=10

`choices` and `schedule` are pure: what the seed decides. `world` has the parts, `producers` fill the topic,
`supervisor` restarts the driver, `process_faults` and `store_faults` make the faults, `run` combines them, `readers`
and `proof` compare the records in Kafka and in the bucket, and `report` prints the result.
"""
