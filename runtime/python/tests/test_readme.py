"""The examples of the README and of docs/embedding.md."""

import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize(
    ("page", "printed"),
    [(HERE.parent / "README.md", "16.5"), (HERE.parents[2] / "docs/embedding.md", "['user 1', 'user 2']")],
)
def test_the_example(page, printed, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    exec(compile(code, page.name, "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == printed
