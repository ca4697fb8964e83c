"""What there is: objects of the API server, and reports of drivers."""
