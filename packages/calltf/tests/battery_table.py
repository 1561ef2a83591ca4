"""Writes docs/calltf_coverage.md: what of the battery works where. `test_battery.py` holds it to that.

python packages/calltf/tests/battery_table.py
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_battery import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page())
