"""Validation criteria: checks on the text of a step's output, in a list or a tree.

A failing tree names the leaves that failed and what would satisfy them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import Struct

from interlock.core.definition.conditions import Scope, describe, holds
from interlock.core.definition.workflow import AllRules, AnyRule, Criteria, NotRule, Rule
from interlock.core.json_schema import BadSchema, check_schema, violations
from interlock.core.patterns import BadPattern, search


class FailedCheck(Struct, frozen=True):
    """A check that failed, in the author's words, and what would make it pass.

    One that could not be evaluated fails, and so does its opposite.
    """

    message: str
    requirement: str
    evaluated: bool = True


def failed_checks(criteria: Criteria | None, text: str, scope: Scope) -> tuple[FailedCheck, ...]:
    """Check the text; no criteria accept any text that is not empty."""
    match criteria:
        case None:
            return ()
        case Rule():
            if not holds(criteria.condition, scope):
                return ()
            try:
                detail = _shortcoming(criteria, text)
            except (BadPattern, BadSchema) as error:
                message = criteria.message or "a check cannot be made"
                return (FailedCheck(message, f"the author must fix it: {error}", evaluated=False),)
            return (FailedCheck(criteria.message or detail, detail),) if detail else ()
        case AllRules():
            return tuple(failed for rule in criteria.rules for failed in failed_checks(rule, text, scope))
        case AnyRule():
            alternatives = [failed_checks(rule, text, scope) for rule in criteria.rules]
            if not all(alternatives) or not alternatives:
                return ()
            said = (" and ".join(leaf.message for leaf in failed) for failed in alternatives)
            message = "none of the alternatives holds: " + "; ".join(said)
            wanted = "satisfy one of: " + " OR ".join(map(_together, alternatives))
            evaluated = all(any(leaf.evaluated for leaf in failed) for failed in alternatives)
            return (FailedCheck(message, wanted, evaluated=evaluated),)
        case NotRule():
            failed = failed_checks(criteria.rule, text, scope)
            if any(check.evaluated for check in failed):
                return ()
            if failed:
                return failed
            avoided = requirement(criteria.rule)
            messages = "; ".join(_messages(criteria.rule)) or f"must not hold: {avoided}"
            return (FailedCheck(messages, f"avoid: {avoided}"),)
        case _:
            assert_never(criteria)


def _together(alternative: tuple[FailedCheck, ...]) -> str:
    """Join what one alternative lacks, so that nobody takes a part of it for another alternative."""
    wanted = " AND ".join(failed.requirement for failed in alternative)
    return f"({wanted})" if len(alternative) > 1 else wanted


def _messages(criteria: Criteria) -> Iterator[str]:
    """Yield what the author wrote at the leaves of a tree."""
    match criteria:
        case Rule():
            if criteria.message:
                yield criteria.message
        case AllRules() | AnyRule():
            for rule in criteria.rules:
                yield from _messages(rule)
        case NotRule():
            yield from _messages(criteria.rule)
        case _:
            assert_never(criteria)


def _shortcoming(rule: Rule, text: str) -> str:
    """Say what the text lacks; empty if the rule holds."""
    match rule.kind:
        case "contains":
            return "" if rule.value in text else f"the output must contain '{rule.value}'"
        case "regex":
            found = search(rule.pattern, text, rule.flags)
            return "" if found else f"the output must match /{rule.pattern}/{rule.flags}"
        case "length":
            if rule.minimum is not None and len(text) < rule.minimum:
                return f"the output has {len(text)} characters, at least {rule.minimum} are needed"
            if rule.maximum is not None and len(text) > rule.maximum:
                return f"the output has {len(text)} characters, at most {rule.maximum} are allowed"
            return ""
        case "schema":
            try:
                value = msgspec.json.decode(text.encode())
            except (msgspec.DecodeError, RecursionError) as error:
                return f"the output must be JSON: {error}"
            check_schema(rule.schema)
            return "; ".join(violations(rule.schema, value))
        case _:
            assert_never(rule.kind)


def requirement(criteria: Criteria) -> str:
    """Say in words what the criteria ask for, so that an agent knows before it tries."""
    match criteria:
        case Rule():
            return _rule_requirement(criteria) + _when(criteria)
        case AllRules():
            return "; ".join(requirement(rule) for rule in criteria.rules)
        case AnyRule():
            return " OR ".join(
                f"({requirement(rule)})" if _is_group(rule) else requirement(rule) for rule in criteria.rules
            )
        case NotRule():
            return f"not: {requirement(criteria.rule)}"
        case _:
            assert_never(criteria)


def _when(rule: Rule) -> str:
    return f" (if {describe(rule.condition)})" if rule.condition is not None else ""


def _is_group(criteria: Criteria) -> bool:
    return isinstance(criteria, AllRules) and len(criteria.rules) > 1


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
            return f"the output is JSON that matches the schema{rule.message and f': {rule.message}'}"
        case _:
            assert_never(rule.kind)


def lines_of(criteria: Criteria, indent: str = "") -> Iterator[str]:
    """Write the criteria as a list, so that they are known before the attempt."""
    match criteria:
        case Rule(kind="schema"):
            schema = msgspec.json.encode(criteria.schema).decode()
            yield f"{indent}- {criteria.message}{_when(criteria)}: nothing but JSON that matches {schema}"
        case Rule():
            yield f"{indent}- {criteria.message}{_when(criteria)}"
        case AllRules():
            for rule in criteria.rules:
                yield from lines_of(rule, indent)
        case AnyRule():
            yield f"{indent}- one of:"
            for rule in criteria.rules:
                if _is_group(rule):
                    yield f"{indent}  - all of:"
                yield from lines_of(rule, indent + ("    " if _is_group(rule) else "  "))
        case NotRule():  # the message of a rule under it may name what to avoid, or say to avoid it
            messages = "; ".join(line.strip(" -") for line in lines_of(criteria.rule))
            yield f"{indent}- avoid that {requirement(criteria.rule)} ({messages})"
        case _:
            assert_never(criteria)
