"""Looks for late data, as the product files say."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.errata.command import build_late
from airflow.providers.errata.operators.base import ErrataOperator
from airflow.sdk import Context


class ErrataLateOperator(ErrataOperator):
    """Look once for late data, and do what the key ``late`` of each product says.

    Returns the products in which something is left for a person. That is no failure, because a proposed plan waits for
    its approval, unless ``fail_when_left`` is set.
    """

    template_fields = ("product",)

    def __init__(
        self, *, product: str | None = None, parallel: int = 2, fail_when_left: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.product = product
        self.parallel = parallel
        self.fail_when_left = fail_when_left

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002 (Airflow passes it)
        """Look, and list what is left."""
        outcome = self.call(build_late(self.product, self.parallel))
        if "products" not in outcome.answer:
            self.judge("late", outcome)
        left = [one for one in outcome.answer["products"] if not outcome.answer.get("ok") and one.get("next")]
        for one in left:
            self.log.warning("%s: %s; next: %s", one["product"], one.get("why") or "a person decides", one["next"])
        if left and self.fail_when_left:
            raise AirflowFailException(f"something is left for a person in {', '.join(one['product'] for one in left)}")
        return [str(one["product"]) for one in left]
