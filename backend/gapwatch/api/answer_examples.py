"""Examples of answers for the OpenAPI document."""

from typing import Any

FLEET: dict[str, Any] = {}
DROP: dict[str, Any] = {}
LEDGER: dict[str, Any] = {}
POLICY_DROP: dict[str, Any] = {}
TRUST: dict[str, Any] = {}
