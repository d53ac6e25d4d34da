pytest_plugins = [
    "tests.parts",
    "tests.servers",
    "tests.static_files",
    "tests.hms",
    "tests.spark",
    "tests.glue",
    "tests.trino",
]
