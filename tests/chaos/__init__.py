"""Chaos on real parts: a sink between a real broker and a real store, and faults at random times, chosen by a seed.

    make chaos SEED=7 MINUTES=10

What belongs together is in one module: `choices` and `schedule` are what the seed decides, and pure; `world` holds the
parts, `producers` fill the topic, `supervisor` restarts the driver, `processes` and `store` make the faults, `run` puts
them together, `readers` and `proof` count records in Kafka and in the bucket, and `report` prints what happened.
"""
