"""The Spark session, the job that writes slices, and the loop that commits them."""
