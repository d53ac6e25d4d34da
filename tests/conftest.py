pytest_plugins = [
    "tests.garbage",
    "tests.parts",
    "tests.profiles",
    "tests.second_run",
    "tests.emptying",
    "tests.servers",
    "tests.static_files",
    "tests.hms",
    "tests.spark",
    "tests.glue",
    "tests.trino",
    "tests.flink",
]
