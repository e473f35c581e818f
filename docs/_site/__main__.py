"""``python -m _site build/docs``: run the examples, write the sources, build the HTML and look for dead links."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from _site import examples, links, staging

# Warnings are errors, and all of them are shown.
SPHINX = ["-W", "--keep-going", "-n", "-q", "-c", str(Path(__file__).parent)]


def build(out: Path, work: Path, only: Sequence[str] = (), jobs: str = "1") -> int:
    """Build the site into a folder and return the exit status. ``work`` keeps what a later build can use again."""
    start = time.perf_counter()
    site = staging.stage(examples.sessions(work))
    if only:
        staging.keep_only(site, only)
    staging.write(site, work / "source")
    print(f"{len(site.texts)} pages written in {time.perf_counter() - start:.0f} s")
    # A process of its own, since Sphinx forks and JAX, which the examples have loaded, warns of that.
    command = [sys.executable, "-m", "sphinx", *SPHINX, "-j", jobs, "-d", str(work / "doctrees")]
    status = subprocess.run([*command, str(work / "source"), str(out)], check=False).returncode
    if status:
        return status
    dead = [*links.dead_links_of_sources(), *links.dead_links(out)]
    for line in dead:
        print("dead link:", line, file=sys.stderr)
    print(f"{out / 'index.html'} built in {time.perf_counter() - start:.0f} s, {len(dead)} dead links")
    return 1 if dead else 0


def main() -> int:
    """Parse the command line and build the site."""
    parser = argparse.ArgumentParser(prog="python -m _site", description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the HTML")
    parser.add_argument("--work", type=Path, default=Path("build/site"), help="folder of sources and caches")
    parser.add_argument(
        "--only",
        metavar="PREFIX",
        action="append",
        default=[],
        help="of the generated pages, only operations/math, say",
    )
    parser.add_argument("-j", "--jobs", default="auto", help="processes of Sphinx (default: auto)")
    options = parser.parse_args()
    return build(options.out, options.work, options.only, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
