"""Reads from the text of a step which variables it sets and which checkpoints it names.

A variable is set by a verb (set, reset, clear, mark, record, force) or an assignment (`x = v`) anywhere in a
sentence, unless that is negated, part of a condition, or about what somebody else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

_VERB = re.compile(
    r"\b(?:(?:re)?set(?:s|ting)?|clear(?:s|ing)?|mark(?:s|ing)?|record(?:s|ing)?|forc(?:e|es|ing))\b", re.I
)
_NAME = re.compile(r"(?<![\w.-])[A-Za-z_](?:[\w-]*\w)?")
_MARKED = re.compile(r"[`'\"][A-Za-z_][\w.-]*[`'\"]|[A-Za-z]*(?:_|[a-z][A-Z])\w*")
_ASSIGNED = re.compile(r"(?<![\w.-])([A-Za-z_](?:[\w-]*\w)?)(?:\.[\w-]+)*[`'\"]?\s*:?=(?![=>])")
_MUST_BE_SET = re.compile(
    r"([A-Za-z_](?:[\w-]*\w)?)[`'\"]?\s+(?:must|should|has to|is to)\s+be\s+(?:re)?set\b", re.I
)
_SHOWN = re.compile(r"\{\{.*?\}\}")
_WRAPPED = re.compile(r"\n(?=[a-z])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+[`'\"*]*")

# A negation in the condition that a sentence begins with does not negate what the sentence says to do.
_LEADING_CONDITION = re.compile(
    r"^\W*(?:(?:else|otherwise)\s+)?(?:if|when|once|unless|until|after|where)\b[^,:]*[,:]", re.I
)
_NEGATION = re.compile(r"\b(?:never|not|cannot|without|avoid|nor|neither|nobody)\b|n't\b", re.I)
_NO_VERB = re.compile(
    r"\b(?:is|are|was|were|been|an?|the|this|that|each|every|very|its|your|closed)\s+$", re.I
)
_BY_OTHERS = re.compile(
    r"\b(?:user|checkpoint|gate|server|engine|option)s?\s+(?:(?:will|must|may|can|should|to)\s+)?$", re.I
)
_CLAUSE_START = re.compile(r".*(?:[,:;→]|->|\bthen\b|\bset\b)", re.I | re.S)
_CONDITION = re.compile(r"\b(?:if|when|unless|until|while|whether|where|for|once|after|because)\b", re.I)
_OBJECT_END = re.compile(
    r"\b(?:if|when|unless|until|while|whether|because|so|from|using|based|per|before|after|where|according|by"
    r"|not|never|without|except|but|than|which|whose)\b",
    re.I,
)
_VALUE = re.compile(r"(?:\bto\b|=)[^,;]*?(?=,|;|\band\b|$)|\([^()]*\)")
_FILLER = re.compile(
    r"\W*(?:(?:the|an?|both|all|these|this|context|variables?|keys?|flags?|value|of|following|and|or)\b\W*)*",
    re.I,
)

_DECIDED = (
    r"(?:selected|chosen|picked|answered|decided|confirmed|approved|accepted|agreed|given|made|set)\b[^.\n]{0,40}?"
    r"\b(?:at|in|by|from|via|with|through|during)"
)
_FOLLOWING = (
    r"(?:after|per|from|following|according to|based on|depending on|once"
    r"|(?:answer|response|reply) (?:to|of|from|at)|(?:outcome|result) (?:of|from))"
)


def names_set_in(text: str, known: Set[str]) -> list[str]:
    """Name the variables, of those that are known, that the text says its reader sets."""
    found, in_list = dict[str, None](), False
    for line in filter(str.strip, _WRAPPED.sub(" ", _SHOWN.sub(" ", text)).splitlines()):
        bullet = _BULLET.match(line)
        in_list = in_list and bullet is not None
        if in_list and bullet is not None and (name := _NAME.match(line, bullet.end())):
            found[name[0]] = None
        for sentence in _SENTENCE_END.split(line):
            found |= dict.fromkeys(_names_in_sentence(sentence))
            in_list = in_list or (sentence.rstrip().endswith(":") and any(_orders(sentence)))
    return [name for name in found if name in known]


def _names_in_sentence(sentence: str) -> Iterator[str]:
    for verb in _orders(sentence):
        yield from _objects(sentence[verb.end() :])
    for pattern in (_ASSIGNED, _MUST_BE_SET):
        for match in pattern.finditer(sentence):
            before = sentence[: match.start()]
            if not _is_negated(before) and not _CONDITION.search(_CLAUSE_START.sub("", before)):
                yield match[1]


def _orders(sentence: str) -> Iterator[re.Match[str]]:
    """Yield the verbs of a sentence that tell its reader to set something."""
    for verb in _VERB.finditer(sentence):
        before = sentence[: verb.start()]
        if not (_is_negated(before) or _NO_VERB.search(before) or _BY_OTHERS.search(before)):
            yield verb


def _is_negated(before: str) -> bool:
    return _NEGATION.search(_LEADING_CONDITION.sub("", before)) is not None


def _objects(after: str) -> Iterator[str]:
    """Yield the names after a verb: those of an enumeration, and any that is quoted or spelled as a name."""
    phrase = _VALUE.sub(" , ", _OBJECT_END.split(after, maxsplit=1)[0])
    start = 0
    while (filler := _FILLER.match(phrase, start)) and (name := _NAME.match(phrase, filler.end())):
        yield name[0]
        start = name.end()
        if not re.match(r"[`'\"\w.]*\s*(?:,|and\b|or\b|&|/)", phrase[start:]):
            break
    for marked in _MARKED.finditer(phrase):
        yield marked[0].strip("`'\"").partition(".")[0]


def names_gate(text: str, gate_id: str, name: str) -> bool:
    """Say whether a text names a checkpoint, by its id or by its name."""
    return re.search(_gate_pattern(gate_id, name), text, re.I) is not None


def uses_answer(text: str, gate_id: str, name: str) -> bool:
    """Say whether a text speaks of the answer to a checkpoint as already given."""
    pattern = rf"\b(?:{_DECIDED}|{_FOLLOWING})\s+(?:the\s+)?(?:user's\s+)?{_gate_pattern(gate_id, name)}"
    return re.search(pattern, text, re.I) is not None


def _gate_pattern(gate_id: str, name: str) -> str:
    """Match the id or the name; a single word only if it is quoted or called a checkpoint."""
    words = [(word, re.search(r"[\s_-]", word) is not None) for word in {gate_id, name} if word]
    plain = "|".join(re.escape(word) for word, is_compound in words if is_compound)
    single = "|".join(re.escape(word) for word, is_compound in words if not is_compound)
    patterns = [rf"[`'\"]?\b(?:{plain})\b(?![\w-])"] if plain else []
    patterns += [rf"(?:[`'\"](?:{single})[`'\"]|\b(?:{single})\s+(?:checkpoint|gate)\b)"] if single else []
    return f"(?:{'|'.join(patterns)})"
