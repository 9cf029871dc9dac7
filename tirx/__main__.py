# SPDX-License-Identifier: Apache-2.0
"""python -m tirx: see tirx.seeing."""

import sys

from tirx.seeing import main

sys.exit(main(sys.argv[1:]))
