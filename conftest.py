"""pytest's side of kernelproof; `properties.plugin` does the work."""

pytest_plugins = ["properties.plugin"]
