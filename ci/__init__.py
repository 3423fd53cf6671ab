"""The commands of the project, `ci/verify` and `ci/test`, and what they need: set-up, options, report, summary."""
