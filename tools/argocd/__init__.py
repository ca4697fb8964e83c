"""A program made of Argo CD's own code: it judges health, runs actions and computes diffs for tests."""
