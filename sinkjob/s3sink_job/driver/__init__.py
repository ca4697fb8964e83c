"""The loop: observe, plan, write, commit, publish, report."""
