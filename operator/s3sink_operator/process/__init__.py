"""The operator as a process: flags, watches, the work queue, its workers, probes."""
