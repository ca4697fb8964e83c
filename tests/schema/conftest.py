"""The machine may be busy: how long one example takes says nothing."""

from hypothesis import settings

settings.register_profile("s3sink", deadline=None, print_blob=True)
settings.load_profile("s3sink")
