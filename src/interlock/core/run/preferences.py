"""How far a run may go by itself: the two preferences, their order, and the presets people choose from."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Autonomy = Literal["guided", "full_auto_stop_on_user_deps", "full_auto_never_stop"]
RiskPolicy = Literal["conservative", "balanced", "aggressive"]
Mode = Literal["guided", "stop", "never-stop"]
DecisionPolicy = Literal["agent", "auto", "client", "user"]
Enforcement = Literal["strict", "advisory"]

RETENTION_DAYS = 90  # without activity, after which `gc` removes a session
STALE_HOURS = 24  # without activity, after which a run that waits for nobody is shown as stale
AUTONOMY: tuple[Autonomy, ...] = get_args(Autonomy)
RISK: tuple[RiskPolicy, ...] = get_args(RiskPolicy)
DECISIONS: tuple[DecisionPolicy, ...] = ("user", "client", "auto", "agent")  # the tightest first, like all
ENFORCEMENT: tuple[Enforcement, ...] = get_args(Enforcement)


class Preferences(Struct, frozen=True):
    """The effective snapshot that every node carries."""

    autonomy: Autonomy = "guided"
    risk_policy: RiskPolicy = "conservative"

    @property
    def never_stops(self) -> bool:
        return self.autonomy == "full_auto_never_stop"

    @property
    def guided(self) -> bool:
        return self.autonomy == "guided"


class Labelled(Struct, frozen=True):
    """How people read the value of a preference."""

    label: str
    description: str


LABELS: dict[Autonomy | RiskPolicy, Labelled] = {
    "guided": Labelled("Guided", "stops for confirmations, gates and what only you can give"),
    "full_auto_stop_on_user_deps": Labelled(
        "Automatic, stops for you", "stops for gates and what only you can give; confirmations are assumed"
    ),
    "full_auto_never_stop": Labelled(
        "Automatic, never stops", "stops for nothing, and records a gap for everything it had to assume"
    ),
    "conservative": Labelled("Conservative", "prefers the safe choice, and says what it left out"),
    "balanced": Labelled("Balanced", "weighs risk against benefit"),
    "aggressive": Labelled("Aggressive", "prefers progress, and says what it risked"),
}
PRESETS: dict[Mode, Preferences] = {
    "guided": Preferences("guided", "conservative"),
    "stop": Preferences("full_auto_stop_on_user_deps", "balanced"),
    "never-stop": Preferences("full_auto_never_stop", "conservative"),
}


def mode_of(preferences: Preferences) -> Mode:
    """Name the preset whose autonomy these preferences have."""
    return next(mode for mode, preset in PRESETS.items() if preset.autonomy == preferences.autonomy)


def stricter(preferences: Preferences, other: Preferences) -> Preferences:
    """The tighter choice of both, each by itself."""
    return Preferences(
        min(preferences.autonomy, other.autonomy, key=AUTONOMY.index),
        min(preferences.risk_policy, other.risk_policy, key=RISK.index),
    )


class SessionTerms(Struct, frozen=True):
    """What the user has set for a session: its mode, who may answer gates, whether gates stop (rule 29)."""

    preferences: Preferences
    policy: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"

    def tightened(self, other: SessionTerms) -> SessionTerms:
        """Return the tighter of both, each term by itself."""
        return SessionTerms(
            stricter(self.preferences, other.preferences),
            min(self.policy, other.policy, key=DECISIONS.index),
            min(self.enforcement, other.enforcement, key=ENFORCEMENT.index),
        )


def exceeds(chosen: Preferences, recommended: Preferences) -> tuple[str, ...]:
    """Name the preferences that are more aggressive than the workflow recommends."""
    over = []
    if AUTONOMY.index(chosen.autonomy) > AUTONOMY.index(recommended.autonomy):
        over.append("autonomy")
    if RISK.index(chosen.risk_policy) > RISK.index(recommended.risk_policy):
        over.append("riskPolicy")
    return tuple(over)
