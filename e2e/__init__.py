"""End-to-end tests: a real Kubernetes, and the image. `make e2e` runs them."""
