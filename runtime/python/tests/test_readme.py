"""The example of the README."""

import pathlib
import re


def test_the_example(capsys):
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "16.5"
