"""Amazon S3 and compatible stores."""
