"""The table of takeovers, of the folders that takeover.py wrote: `table.py FOLDER...`."""

import json
import sys
from pathlib import Path

COLUMNS = ["drifted", "made", "launched", "lost", "evicted"]
WAYS = {"there": "Karpenter {} to Mortise", "back": "Mortise to Karpenter {}"}


def main():
    titles = ["", "nodes", "drifted", "claims made", "launched", "lost", "pods evicted", "half done, and done"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for folder in sys.argv[1:]:
        for version, rows in json.loads((Path(folder) / "rows.json").read_text()).items():
            for way, name in WAYS.items():
                row = rows[way]
                counts = [row[it] for it in COLUMNS]
                cells = [name.format(version.removeprefix("v")), row["nodes"], *counts, row["done"]]
                print("| " + " | ".join(str(it) for it in cells) + " |")


main()
