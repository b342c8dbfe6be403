"""Files of `iridium bench` for tests, and a place for the page that is made from them."""

import contextlib
import io
import json
import xml.etree.ElementTree

import performance_page
from trees import TreeTest

SVG = "{http://www.w3.org/2000/svg}"
SIZES = (8, 1536, 1 << 20)
CPU = {"name": "box", "cpu": "Some CPU", "cores": 2, "device": "", "driver": ""}
GPU = CPU | {"device": "Some GPU", "driver": "580.1"}


def figure(time=10.0, **more):
    identity = {"operation": "all_reduce", "contender": "iridium", "algorithm": "", "dtype": "float32"}
    identity |= {"mode": "graph", "ranks": 2, "bytes": 1 << 20, "blocks": 0}
    if "skipped" in more or "failed" in more:
        return identity | more
    numbers = {"samples": 5, "calls": 50, "median_us": time, "p10_us": time * 0.9, "p90_us": time * 1.2}
    speed = more.get("bytes", 1 << 20) / time / 1e3
    return identity | numbers | {"algorithm_gbps": speed, "bus_gbps": speed, "copy_share": 0} | more


def run(*figures, **more):
    head = {"schema": 1, "kind": "iridium bench", "version": "1.2.3", "commit": "abc123", "command": "iridium bench"}
    return head | {"machine": CPU, "complete": True, "figures": list(figures)} | more


def sizes(contender, factor, **more):
    return [figure(factor * (1 + size / 1000), contender=contender, bytes=size, **more) for size in SIZES]


class PageTest(TreeTest):
    def setUp(self):
        super().setUp()
        (self.root / "results").mkdir()
        self.page, self.plots = self.root / "docs/performance.md", self.root / "docs/performance"

    def put(self, content, name="box/bench.json"):
        self.plant({f"results/{name}": content if isinstance(content, str) else json.dumps(content)})

    def call(self):
        """Status and what was said."""
        said = io.StringIO()
        options = ["--results", self.root / "results", "--page", self.page, "--plots", self.plots]
        with contextlib.redirect_stderr(said):
            status = performance_page.main(list(map(str, options)))
        return status, said.getvalue()

    def text_of(self, *figures, **more):
        self.put(run(*figures, **more))
        self.assertEqual(self.call(), (0, ""))
        return self.page.read_text()

    def svg(self, name):
        root = xml.etree.ElementTree.parse(self.plots / name).getroot()
        self.assertEqual(root.tag, f"{SVG}svg")
        return root

    def words_of(self, name):
        return [text.text for text in self.svg(name).iter(f"{SVG}text")]

    def plot_names(self):
        return sorted(path.name for path in self.plots.glob("*"))
