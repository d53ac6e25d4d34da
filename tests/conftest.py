pytest_plugins = ["tests.parts", "tests.servers"]
