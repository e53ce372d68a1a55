"""The registry of rule kinds. Every module of this package is one kind and defines it as `KIND`."""

from __future__ import annotations

from typing import Any

from gapwatch.kind_registry import load_kinds
from gapwatch.watching.notify_policy import rank
from gapwatch.watching.rule_kind import RuleKind
from gapwatch.watching.rules import Rule, RuleParams

RULE_KINDS: dict[str, RuleKind] = load_kinds(__name__, __path__, RuleKind)


def _default_rules() -> tuple[Rule, ...]:
    """Most severe first, then by the order of their kinds."""
    rules = [
        Rule(default.name, name, default.params, default.severity, is_default=True)
        for name, kind in sorted(RULE_KINDS.items(), key=lambda item: item[1].order)
        for default in kind.defaults
    ]
    return tuple(sorted(rules, key=lambda rule: -rank(rule.severity)))


DEFAULT_RULES = _default_rules()


def read_params(kind: str, values: dict[str, Any]) -> RuleParams:
    """Validate the parameters of a rule; pydantic says what is wrong with them."""
    return RULE_KINDS[kind].params.model_validate(values)


def rules_in_force(own: list[Rule]) -> list[Rule]:
    """The default rules, each replaced by the project's own of the same name, and then the project's others."""
    by_name = {rule.name: rule for rule in own}
    defaults = [by_name.pop(rule.name, rule) for rule in DEFAULT_RULES]
    return defaults + sorted(by_name.values(), key=lambda rule: rule.name)
