"""Any name is kept exactly, or refused by a rule that is stated, on every way in and out."""

import csv
import io
import json
import os
import unittest
import urllib.parse
import xml.dom.minidom

from harness import BIN, TINY, ServerTest

KEPT = [
    "a/b/../c",
    "../../etc/passwd",
    "..",
    'quo"te, comma; it\'s',
    "<img src=x onerror=alert(1)>",
    "</svg><script>alert(1)</script>&amp;",
    "=1+1",
    "+1",
    "-1",
    "@cmd",
    "'=quoted",
    "=HYPERLINK(\"http://x\",\"y\")",
    "☃ 🏳️‍🌈 É e\u0301",
    "\u202egnp.exe",
    " spaces outside ",
    "%2e%2e%2f %s {} ${x} `x` $(x)",
    "a:cancel",
    "NaN",
    "AND OR NOT (",
    "state=running",
    "back\\slash\\\"",
    "x" * 300,
    "é" * 150,
]
REFUSED = ["", "x" * 301, "é" * 151, "line\nbreak", "tab\t", "nul\0", "\x1b[31mred", "\x7f",
           "\u009b31mred"]


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def unmarked(cell):
    """The text that a cell of a CSV file stands for: docs/adr/0014."""
    return cell[1:] if cell.startswith("'") else cell


class Names(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def quoted(self, text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    def found(self, text, field="name"):
        path = "/api/v1/runs?" + urllib.parse.urlencode({"filter": f"{field}={self.quoted(text)}"})
        return [run["id"] for run in self.server.get(path)["runs"]]

    def files(self):
        """Files outside the folders that are named by ids."""
        root = os.path.dirname(self.server.data_dir)
        return {os.path.relpath(os.path.join(where, name), root)
                for where, _, names in os.walk(root) for name in names}

    def test_names_of_runs(self):
        spec = {**TINY, "steps": 3}
        ids = {}
        for name in KEPT:
            ids[name] = self.server.create(name, spec)
        for name in REFUSED[1:]:  # without a name a run is given one
            status, answer = self.server.request(
                "POST", "/api/v1/runs", {"displayName": name, "spec": spec})
            self.assertEqual((status, answer["error"]["details"][0]["field"]),
                             (400, "display_name"), name)
        for name, run in ids.items():
            with self.subTest(name):
                self.server.wait_for_state(run, "SUCCEEDED")
                self.assertEqual(self.server.run(run)["displayName"], name)
                self.assertEqual(self.found(name), [run])
                shown = self.server.cli("show", "--json", "--", name, check=0)
                self.assertEqual(json.loads(shown.stdout)["id"], run)
        for name in REFUSED:
            if "\0" not in name:  # which no command line can hold
                self.assertEqual(self.server.cli("show", "--", name).returncode, 4, name)
        listed = self.server.cli("ls", "--all", "--json", check=0).stdout.splitlines()
        self.assertEqual([json.loads(line)["displayName"] for line in listed], KEPT[::-1])
        table = self.server.cli("ls", "--all", check=0).stdout.splitlines()
        self.assertEqual({line.count("\t") for line in table}, {table[0].count("\t")}, "columns")
        self.check_exports(list(ids.values()))

    def check_exports(self, ids):
        rows = rows_of(self.server.cli("export", *ids, "--format", "csv", check=0).stdout)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])}, "columns are aligned")
        written = list(dict.fromkeys(row[0] for row in rows[1:]))
        self.assertEqual([unmarked(cell) for cell in written], KEPT)
        self.assertEqual([cell for cell in written if cell[0] in "=+-@"], [])
        lines = self.server.cli("export", *ids, "--format", "jsonl", check=0).stdout.splitlines()
        self.assertEqual({json.loads(line)["run"] for line in lines} - {""}, set(ids))
        before = self.files()
        picture = self.server.data_dir.parent / "names.svg"
        self.server.cli("plot", *ids, "-o", str(picture), check=0)
        document = xml.dom.minidom.parse(str(picture))
        tags = {element.tagName for element in document.getElementsByTagName("*")}
        self.assertEqual(tags & {"img", "script"}, set())
        self.assertEqual(self.files() - before, {"names.svg"})

    def test_names_of_experiments(self):
        for name in KEPT:
            with self.subTest(name):
                status, made = self.server.request("POST", "/api/v1/experiments", {
                    "displayName": name, "runs": [{"displayName": name, "spec": {**TINY, "steps": 2}}]})
                self.assertEqual((status, made["displayName"]), (200, name))
                self.assertEqual(self.server.get(f"/api/v1/experiments/{made['id']}")["displayName"],
                                 name)
                self.assertEqual(self.found(name, "experiment"), [made["runs"][0]["id"]])
        for name in REFUSED[1:]:
            status, answer = self.server.request("POST", "/api/v1/experiments", {
                "displayName": name, "runs": [{"spec": TINY}]})
            self.assertEqual(status, 400, name)

    def test_labels_and_notes(self):
        run = self.server.create("labelled", {**TINY, "steps": 2})
        path = f"/api/v1/runs/{run}"
        for text in KEPT:
            fits = len(text.encode()) <= 100
            status, answer = self.server.request("PATCH", path, {"labels": [text]})
            self.assertEqual(status, 200 if fits else 400, text)
            if fits:
                self.assertEqual(self.server.run(run)["labels"], [text])
                self.assertEqual(self.found(text, "label"), [run])
                told = self.server.cli("label", run, "--remove", text, "--json", check=0)
                self.assertEqual(json.loads(told.stdout).get("labels", []), [])
            status, _ = self.server.request("PATCH", path, {"notes": text})
            self.assertEqual((status, self.server.run(run)["notes"]), (200, text))
            self.assertEqual(self.found(text, "notes"), [run])
        for text in REFUSED:
            self.assertEqual(self.server.request("PATCH", path, {"labels": [text]})[0], 400, text)
        for text in ("nul\0", "\x1b[31m", "\u009b31m", "\x7f"):
            self.assertEqual(self.server.request("PATCH", path, {"notes": text})[0], 400, text)
        self.assertEqual(self.server.request("PATCH", path, {"notes": "two\n\tlines"})[0], 200)

    def test_any_text_as_a_filter_is_answered(self):
        for text in [*KEPT, *REFUSED, "'; DROP TABLE runs; --", "(" * 3000, "\\", '"', "loss<"]:
            status, answer = self.server.request(
                "GET", "/api/v1/runs?" + urllib.parse.urlencode({"filter": text}))
            self.assertIn(status, (200, 400), text)
            if status == 400:
                self.assertEqual(answer["error"]["status"], "INVALID_ARGUMENT")
        self.assertIsNone(self.server.process.poll(), "the server lives")


if __name__ == "__main__":
    unittest.main(verbosity=2)
