"""Comments that suppress the findings on their line: ``# noqa: EMB102`` or ``# emberlint: ignore[EMB102] why``."""

from __future__ import annotations

import re
from typing import NamedTuple

from emberlint import config as configuration
from emberlint.codes import rule_modules
from emberlint.config import Config
from emberlint.findings import SAFE, Edit, Finding, Fix, by_place
from emberlint.source.text import Source

_NOQA = re.compile(
    rb"#[ \t]*noqa(?P<colon>[ \t]*:[ \t]*(?P<codes>[A-Z]+[0-9]+(?:[ \t]*[, \t][ \t]*[A-Z]+[0-9]+)*))?", re.IGNORECASE
)
_IGNORE = re.compile(rb"#[ \t]*emberlint[ \t]*:[ \t]*ignore(?![\w-])(?:\[(?P<codes>[^\]\n]*)\])?")
_CODE = re.compile(rb"[A-Za-z]+[0-9]+|[^\s,]+")


class Comment(NamedTuple):
    """A suppression: the codes it names with the span of each, and the span of the comment.

    A ``noqa`` without codes suppresses every finding; ``emberlint: ignore`` (``is_ignore``) must name codes.
    """

    line: int
    start: int
    end: int
    codes: tuple[tuple[str, int, int], ...]
    is_ignore: bool

    def covers(self, code: str) -> bool:
        """Whether a finding with this code is suppressed."""
        return any(code == name for name, _, _ in self.codes) if self.codes else not self.is_ignore


def comments(source: Source) -> list[Comment]:
    """Candidates for suppressions in a source; they may still be in strings."""
    data = source.data
    found = []
    for is_ignore, pattern in ((False, _NOQA), (True, _IGNORE)):
        for match in pattern.finditer(data):
            text = match["codes"]
            codes: tuple[tuple[str, int, int], ...] = ()
            if text is not None:
                base = match.start("codes")
                codes = tuple(
                    (m[0].decode(errors="replace").upper(), base + m.start(), base + m.end())
                    for m in _CODE.finditer(text)
                )
            if text is not None and not is_ignore and not any(code.startswith("EMB") for code, _, _ in codes):
                continue
            found.append(Comment(source.place(match.start())[0], match.start(), match.end(), codes, is_ignore))
    return found


def _comment_offsets(source: Source) -> set[int]:
    """Offsets inside of comments, according to the tokenizer."""
    import io
    import tokenize

    starts: set[int] = set()
    try:
        for token in tokenize.tokenize(io.BytesIO(source.data).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                text = source.line(line)
                starts.update(
                    range(source.offset(line, len(text[:column].encode())), source.offset(line, len(text.encode())))
                )
    except (tokenize.TokenError, SyntaxError, IndentationError, UnicodeError):
        pass
    return starts


def applied(
    findings: list[Finding],
    candidates: list[Comment],
    source: Source,
    codes: tuple[str, ...],
    config: Config,
    where: str,
    *,
    project: bool = False,
) -> tuple[list[Finding], int]:
    """Remaining findings, including those about the suppressions themselves, and the number of suppressed ones.

    ``candidates`` are the ``comments`` of the source. Suppressions of project rules are checked against the findings of
    those rules (``project=True``), other suppressions against the findings of a file.
    """
    ignored = ignores(config, where)
    if ignored:
        findings = [finding for finding in findings if not finding.code.startswith(ignored)]
    if not candidates:
        return findings, 0
    lines = {line for finding in findings for line in (finding.line, finding.end_line)}
    candidates = [comment for comment in candidates if comment.codes or comment.line in lines]
    if candidates:
        inside = _comment_offsets(source)
        candidates = [comment for comment in candidates if comment.start in inside]
    left, used = suppress(findings, candidates)
    silent = len(findings) - len(left)
    for comment in candidates:
        found = _about(comment, used, source, codes, project)
        left += [finding for finding in found if not (ignored and finding.code.startswith(ignored))]
    left.sort(key=by_place)
    return left, silent


def names_project_rules(candidates: list[Comment]) -> bool:
    """Whether a suppression names a project rule."""
    return any(code in PROJECT for comment in candidates for code, _, _ in comment.codes)


def ignores(config: Config, where: str) -> tuple[str, ...]:
    """Codes that ``per-file-ignores`` turns off for a file."""
    return tuple(
        code for pattern, names in config.per_file_ignores if configuration.matches(where, pattern) for code in names
    )


def suppress(findings: list[Finding], candidates: list[Comment]) -> tuple[list[Finding], set[tuple[int, str]]]:
    """Findings that no comment suppresses, and the codes of comments (by their offset) that suppressed one."""
    by_line: dict[int, list[Comment]] = {}
    for comment in candidates:
        by_line.setdefault(comment.line, []).append(comment)
    left, used = [], set()
    for finding in findings:
        quiet = False
        for line in {finding.line, finding.end_line}:
            for comment in by_line.get(line, ()):
                if finding.code != "EMB001" and comment.covers(finding.code):
                    quiet = True
                    used.add((comment.start, finding.code))
        if not quiet:
            left.append(finding)
    return left, used


# The project rules.
PROJECT = frozenset({"EMB004", "EMB110", "EMB111", "EMB501", "EMB502", "EMB503", "EMB504"})


def _about(
    comment: Comment, used: set[tuple[int, str]], source: Source, codes: tuple[str, ...], project: bool
) -> list[Finding]:
    found = []
    known = rule_modules()
    if comment.is_ignore and not comment.codes and "EMB003" in codes and not project:
        line, column = source.place(comment.start)
        where = (source.path, line, column, line, column + comment.end - comment.start)
        found.append(
            Finding("EMB003", "the suppression does not name a rule; write `# emberlint: ignore[EMB102]`", *where)
        )
    for code, start, end in comment.codes:
        if not comment.is_ignore and not code.startswith("EMB"):
            continue
        line, column = source.place(start)
        where = (source.path, line, column, line, column + end - start)
        if code not in known:
            if "EMB003" in codes and not project:
                found.append(Finding("EMB003", f"unknown code `{code}`; run `emberlint rules` for a list", *where))
        elif code in codes and (code in PROJECT) is project and (comment.start, code) not in used and "EMB002" in codes:
            fix = Fix((_removal(comment, code, source),), SAFE, "remove the suppression")
            found.append(Finding("EMB002", f"unused suppression: `{code}` is not reported here", *where, fix))
    return found


def _removal(comment: Comment, code: str, source: Source) -> Edit:
    """Edit that removes one code from a comment, or the comment if it is the only code."""
    data = source.data
    if len(comment.codes) > 1:
        i = next(i for i, item in enumerate(comment.codes) if item[0] == code)
        _, start, end = comment.codes[i]
        if i + 1 < len(comment.codes):
            return Edit(start, comment.codes[i + 1][1], "")
        return Edit(comment.codes[i - 1][2], end, "")
    line, _ = source.place(comment.start)
    end = source.starts[line] if line < len(source.starts) else len(data)
    content = data[source.starts[line - 1] : end].rstrip(b"\r\n")
    end = source.starts[line - 1] + len(content)
    rest = data[comment.end : end]
    following = rest.find(b"#")
    start = comment.start
    if following >= 0:
        return Edit(start, comment.end + following, "")
    while start > source.starts[line - 1] and data[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    if start == source.starts[line - 1] and line < len(source.starts):
        return Edit(start, source.starts[line], "")
    return Edit(start, end, "")
