"""What users need to test against Errata: fakes, failpoints and contract suites."""
