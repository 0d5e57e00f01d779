"""The examples of the README and of the pages."""

import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        (HERE.parent / "README.md", ["16.5"]),
        (HERE.parents[2] / "docs/guide/embedding.md", ["['user 1', 'user 2']"]),
        (HERE.parents[2] / "docs/guide/moving/enclave.md", ["Ada", "Ada"]),
    ],
)
def test_the_examples(page, printed, capsys):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    last = []
    for code in blocks:
        exec(compile(code, page.name, "exec"), {})
        last.append(capsys.readouterr().out.splitlines()[-1])
    assert last == printed
