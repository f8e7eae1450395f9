"""The table of takeovers, of the folders that takeover.py wrote: `table.py FOLDER...`.

Exit code 1 where something drifted, was made, launched, lost or evicted, or was left half done.
"""

import json
import sys
from pathlib import Path

COLUMNS = ["drifted", "made", "launched", "lost", "evicted"]
WAYS = {"there": "Karpenter {} to Mortise", "back": "Mortise to Karpenter {}"}


def main():
    titles = ["", "nodes", "drifted", "claims made", "launched", "lost", "pods evicted", "half done, and done"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    is_clean = True
    for folder in sys.argv[1:]:
        for version, rows in json.loads((Path(folder) / "rows.json").read_text()).items():
            for way, name in WAYS.items():
                row = rows[way]
                counts = [row[it] for it in COLUMNS]
                cells = [name.format(version.removeprefix("v")), row["nodes"], *counts, row["done"]]
                print("| " + " | ".join(str(it) for it in cells) + " |")
                done, _, of = row["done"].partition(" of ")
                is_clean = is_clean and not any(counts) and done == of and row["pods missing"] == 0
    return 0 if is_clean else 1


sys.exit(main())
