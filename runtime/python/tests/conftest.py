"""Ends with the line that CI counts."""


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    problems = len(stats.get("failed", [])) + len(stats.get("error", []))
    terminalreporter.write_line(f"{len(stats.get('passed', [])) + problems} cases, {problems} problems")
