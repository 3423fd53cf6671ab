"""pytest's side of kernelproof; the plugins named here do the work."""

pytest_plugins = [
    "properties.plugin",
    "properties.benchmark_plugin",
    "properties.gate_plugin",
    "properties.kill_plugin",
    "properties.progress_plugin",
    "properties.findings_plugin",
]
