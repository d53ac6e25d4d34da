pytest_plugins = ["tests.parts", "tests.servers", "tests.hms", "tests.spark", "tests.glue", "tests.trino"]
