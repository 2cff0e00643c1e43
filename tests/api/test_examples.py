"""examples/: each manifest is taken as it stands by kubectl, which refuses fields that the server does not know, and its page names it."""
import glob
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lab import ON_KUBERNETES, Lab  # noqa: E402

EXAMPLES = os.path.join(HERE, "../../examples")
# Of Multus: a plain cluster has no such kind.
OF_OTHERS = ("guest-network.yaml", "migration-network.yaml")


def names():
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(EXAMPLES, "*.yaml")))


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()

    @classmethod
    def tearDownClass(cls):
        cls.lab.close()

    def test_each_is_taken(self):
        """In an order in which what one names is there: a migration after its guest."""
        for name in sorted(names(), key=lambda n: n.startswith("migration")):
            if ON_KUBERNETES and name in OF_OTHERS:
                continue
            with self.subTest(name):
                path = os.path.join(EXAMPLES, name)
                with open(path, encoding="utf8") as f:
                    # apply wants a name, and a guest has one move at a time
                    how = ["create", "--dry-run=server"] if "generateName:" in f.read() else ["apply"]
                self.assertIn(" created", self.lab.kubectl(*how, "--validate=strict", "-f", path))

    def test_each_is_told_of(self):
        with open(os.path.join(EXAMPLES, "README.md"), encoding="utf8") as f:
            self.assertEqual(sorted(set(re.findall(r"\]\((\S+\.yaml)\)", f.read()))), names())


if __name__ == "__main__":
    unittest.main()
