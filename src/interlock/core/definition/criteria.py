"""Validation criteria: checks on the text of a step's output, in a list or a tree.

A failing tree names the leaves that failed and what would satisfy them.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.conditions import Scope, holds
from interlock.core.definition.workflow import AllRules, AnyRule, Criteria, NotRule, Rule
from interlock.core.json_schema import violations
from interlock.core.patterns import BadPattern, search


class Failure(Struct, frozen=True):
    """A check that failed, in the author's words, and what would make it pass."""

    message: str
    requirement: str


def failures(criteria: Criteria | None, text: str, scope: Scope) -> tuple[Failure, ...]:
    """Check the text; no criteria accept any text that is not empty."""
    match criteria:
        case None:
            return ()
        case Rule():
            return _check(criteria, text, scope)
        case AllRules():
            return tuple(one for rule in criteria.rules for one in failures(rule, text, scope))
        case AnyRule():
            return _any(criteria, text, scope)
        case NotRule():
            return _not(criteria, text, scope)
        case _:
            assert_never(criteria)


def _any(criteria: AnyRule, text: str, scope: Scope) -> tuple[Failure, ...]:
    each = [failures(rule, text, scope) for rule in criteria.rules]
    if not each or any(not failed for failed in each):
        return ()
    leaves = [leaf for failed in each for leaf in failed]
    messages = "; ".join(leaf.message for leaf in leaves)
    requirements = " OR ".join(leaf.requirement for leaf in leaves)
    return (Failure(f"none of the alternatives holds: {messages}", f"satisfy one of: {requirements}"),)


def _not(criteria: NotRule, text: str, scope: Scope) -> tuple[Failure, ...]:
    if failures(criteria.rule, text, scope):
        return ()
    return (Failure(f"must not hold: {requirement(criteria.rule)}", f"avoid: {requirement(criteria.rule)}"),)


def _check(rule: Rule, text: str, scope: Scope) -> tuple[Failure, ...]:
    if not holds(rule.condition, scope):
        return ()
    try:
        detail = _problem(rule, text)
    except BadPattern as error:
        return (Failure(rule.message or "a pattern cannot be run", f"the author must fix it: {error}"),)
    return (Failure(rule.message or detail, detail),) if detail else ()


def _problem(rule: Rule, text: str) -> str:
    match rule.kind:
        case "contains":
            return "" if rule.value in text else f"the output must contain '{rule.value}'"
        case "regex":
            return "" if search(rule.pattern, text, rule.flags) else requirement(rule)
        case "length":
            return _length(rule, len(text))
        case "schema":
            return _schema(rule, text)
        case _:
            assert_never(rule.kind)


def _length(rule: Rule, length: int) -> str:
    if rule.minimum is not None and length < rule.minimum:
        return f"the output has {length} characters, at least {rule.minimum} are needed"
    if rule.maximum is not None and length > rule.maximum:
        return f"the output has {length} characters, at most {rule.maximum} are allowed"
    return ""


def _schema(rule: Rule, text: str) -> str:
    try:
        value = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, RecursionError) as error:
        return f"the output must be JSON: {error}"
    return "; ".join(violations(rule.schema, value))


def requirement(criteria: Criteria) -> str:
    """Say in words what the criteria ask for, so that an agent knows before it tries."""
    match criteria:
        case Rule():
            return _rule_requirement(criteria)
        case AllRules():
            return "; ".join(requirement(rule) for rule in criteria.rules)
        case AnyRule():
            return " OR ".join(requirement(rule) for rule in criteria.rules)
        case NotRule():
            return f"not: {requirement(criteria.rule)}"
        case _:
            assert_never(criteria)


def _rule_requirement(rule: Rule) -> str:
    match rule.kind:
        case "contains":
            return f"the output contains '{rule.value}'"
        case "regex":
            return f"the output matches /{rule.pattern}/{rule.flags}"
        case "length":
            low, high = rule.minimum, rule.maximum
            bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
            return f"the output has {' and '.join(bounds)} characters"
        case "schema":
            return f"the output is JSON: {rule.message}"
        case _:
            assert_never(rule.kind)
