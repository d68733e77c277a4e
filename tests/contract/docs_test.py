"""What the tree promises about itself, read from its files alone.

Documents name files that exist; sources include only what their folder may see; nothing mentions
the machine it was written on. Needs Python's own library only.
"""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder -> the folders of server/ that it may include, besides itself. docs/architecture.md draws it.
BEFORE_APP = {"base", "domain", "storage", "stream", "scheduler", "executor"}
MAY_INCLUDE = {
    "server/base": set(),
    "server/domain": {"base"},
    "server/storage": {"base", "domain"},
    "server/stream": {"base", "domain"},
    "server/scheduler": {"base", "domain"},
    "server/executor": {"base", "domain"},
    "server/app": BEFORE_APP,
    "server/rpc": BEFORE_APP | {"app"},
    "server/http": BEFORE_APP | {"app", "export"},
    "server/main": BEFORE_APP | {"app", "rpc", "http"},
    "server/export": {"base"},
    "server/trainer": {"base"},
    "client": {"domain", "export"},
}
# The files that see LibTorch's headers; matrix_product.h says why so few.
SEE_TORCH = {"server/trainer/model/matrix_product.cc", "server/trainer/train/threads.cc"}
TORCH = re.compile(r"(torch|ATen|c10)/")
WIRE = re.compile(r"(grpc|grpcpp|google|spdlog|absl|normlab)/")

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\s]+)`")
# What building and running leave in the tree; .gitignore says the same.
MADE_HERE = re.compile(r"\.git/|build|\.venv|normlab-article/|tests/artefacts/|web/src/gen/"
                       r"|(.*/)?(node_modules|__pycache__|dist)/")
# A place that is nobody's but the author's. Put together here, so that this file may be searched too.
ELSEWHERE = re.compile(r"(?<![\w.])/" + r"work/|\.\./" + r"shared\b")


def tracked():
    """Files of the tree, relative to its root: those git knows and new ones that it does not ignore."""
    try:
        answer = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            capture_output=True, check=True)
        names = answer.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # unpacked from an archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        names = [name for name in names if not MADE_HERE.match(name)]
    return sorted(name for name in set(names) - {""} if (ROOT / name).is_file())


def text_of(name):
    """None for what is no text."""
    data = (ROOT / name).read_bytes()
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


class Documents(unittest.TestCase):
    def setUp(self):
        self.files = tracked()
        self.documents = [name for name in self.files if name.endswith(".md")]

    def test_links_lead_somewhere(self):
        wrong = []
        for name in self.documents:
            text = text_of(name)
            # Blanked, not removed: positions still give lines.
            prose = CODE_BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
            for link in LINK.finditer(prose):
                target = link[1].split("#")[0]
                if not target or "://" in target or target.startswith("mailto:"):
                    continue
                if not (ROOT / name).parent.joinpath(target).exists():
                    wrong.append(f"{name}:{line_of(text, link.start())}: no {target}")
        self.assertEqual(wrong, [])

    def test_paths_in_backticks_exist(self):
        """`server/app/api.h` is a path because server/ is a folder of the tree; so is `README.md`."""
        top = {name.split("/")[0] for name in self.files}
        wrong = []
        for name in self.documents:
            if "/" in name and not name.startswith("docs/"):
                continue  # those speak of paths in their own folders
            text = text_of(name)
            prose = CODE_BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
            for quoted in QUOTED.finditer(prose):
                path = quoted[1]
                if path.split("/")[0] not in top or re.search(r"\b[A-Z]{3,}\b(?!\.md)", path):
                    continue  # no path of ours, or one with a placeholder: NAME.cc
                if not list(ROOT.glob(path.rstrip("/"))):
                    wrong.append(f"{name}:{line_of(text, quoted.start())}: no {path}")
        self.assertEqual(wrong, [])

    def test_scripts_in_code_blocks_exist(self):
        wrong = []
        for name in self.documents:
            for block in CODE_BLOCK.finditer(text_of(name)):
                for script in re.findall(r"(?<!\S)(?:deploy|tests)/\S+\.(?:sh|py)\b", block[0]):
                    if not (ROOT / script).is_file():
                        wrong.append(f"{name}: no {script}")
        self.assertEqual(wrong, [])

    def test_every_document_is_in_the_index(self):
        index = text_of("docs/README.md")
        linked = {link[1].split("#")[0] for link in LINK.finditer(index)}
        written = {name.removeprefix("docs/") for name in self.documents
                   if name.startswith("docs/") and name != "docs/README.md"}
        self.assertEqual(written - linked, set())

    def test_nothing_mentions_the_machine_it_was_written_on(self):
        wrong = []
        for name in self.files:
            text = text_of(name)
            if text is None:
                continue
            for found in ELSEWHERE.finditer(text):
                here = (ROOT / name).parent / found[0]
                if found[0].startswith("..") and here.resolve().is_relative_to(ROOT) and here.exists():
                    continue  # a neighbour in the tree
                wrong.append(f"{name}:{line_of(text, found.start())}: {found[0]}")
        self.assertEqual(wrong, [])


class Includes(unittest.TestCase):
    def setUp(self):
        sources = [name for name in tracked() if re.fullmatch(r"(server|client)/.*\.(h|cc|c)", name)]
        self.assertGreater(len(sources), 100)
        self.includes = []  # (file, line, what it includes)
        for name in sources:
            text = text_of(name)
            self.includes += [(name, line_of(text, found.start(1)), found[1])
                              for found in INCLUDE.finditer(text)]

    def wrong(self, may):
        """The includes that `may` does not allow."""
        return [f"{name}:{line}: {included}"
                for name, line, included in self.includes if not may(name, included)]

    @staticmethod
    def folder_of(name):
        parts = name.split("/")
        return parts[0] if parts[0] == "client" else "/".join(parts[:2])

    def test_folders_include_one_way(self):
        def may(name, included):
            folder = self.folder_of(name)
            if included.startswith("web/"):
                return folder == "server/main"
            if included.startswith("client/"):
                return folder == "client"
            if not included.startswith("server/"):
                return True
            target = self.folder_of(included)
            return target == folder or target.removeprefix("server/") in MAY_INCLUDE[folder]

        self.assertEqual(self.wrong(may), [])

    def test_the_trainers_two_sides_meet_in_trainer_h_only(self):
        border = "server/trainer/trainer.h"
        engine = ("server/trainer/model/", "server/trainer/train/")
        checksum = "server/base/crc32c.h"  # needs nothing but the C++ library

        def may(name, included):
            if name.startswith(engine):
                return (not WIRE.match(included) and
                        (not included.startswith("server/") or
                         included in (border, checksum) or included.startswith(engine)))
            return not included.startswith(engine)

        self.assertEqual(self.wrong(may), [])

    def test_torch_is_seen_by_its_two_files_only(self):
        self.assertEqual(
            self.wrong(lambda name, included: name in SEE_TORCH or not TORCH.match(included)), [])

    def test_kernels_include_only_intrinsics_and_themselves(self):
        """A standard inline function compiled for AVX-512 could become the whole program's copy."""
        kernels = "server/trainer/model/kernels/"
        compiled_wide = {f"{kernels}{name}"
                         for name in ("kernels_isa.cc", "kernels.h", "vector.h", "product.h",
                                      "attention.h")}
        self.assertEqual(
            self.wrong(lambda name, included: name not in compiled_wide or
                       included.startswith(kernels) or included == "immintrin.h"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
