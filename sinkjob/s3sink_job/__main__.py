"""`python -m s3sink_job`: what a driver pod runs."""

from s3sink_job.cli import main

if __name__ == "__main__":
    main()
