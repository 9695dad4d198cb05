"""What others see of a job while it runs: logs, metrics, a report."""
