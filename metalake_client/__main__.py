"""`python -m metalake_client` is `gcli`."""

import sys

from metalake_client.cli.app import main

sys.exit(main())
