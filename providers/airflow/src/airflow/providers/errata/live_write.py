"""A task decorator for live jobs: the function writes only while Errata keeps corrections out of its partitions."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.providers.errata.command import build_live_write
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Installation, start_process
from airflow.providers.errata.operators.base import RAISED
from airflow.providers.errata.outcome import choose_course, describe_outcome, read_outcome
from airflow.providers.errata.triggers.lease import ErrataLeaseTrigger
from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk import Context
from airflow.sdk.bases.decorator import TaskDecorator, task_decorator_factory

KEEPER = ("cat",)
"""The program that keeps the lease: it ends when its input does, so a killed task leaves no lease behind."""
SIGN = b"held\n"


class Frozen(Exception):
    """A correction has frozen the partitions."""


@contextmanager
def write_lease(installation: Installation, table: str, partitions: str | None, name: str) -> Iterator[None]:
    """Hold a write lease while the block runs; raises :class:`Frozen` if a correction has the partitions."""
    call = installation.build_call(build_live_write(table, partitions, name, KEEPER))
    with tempfile.TemporaryFile() as errors:
        keeper = start_process(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        try:
            _require_lease(keeper, table)
            yield
            if keeper.poll() is not None:
                raise AirflowException(
                    f"the lease on {table} ended before the task did; if a correction froze its partitions meanwhile, "
                    "the publication finds this write as a conflict"
                )
        finally:
            keeper.communicate()  # the end of its input ends the keeper, and thereby the lease


def _require_lease(keeper: subprocess.Popen[bytes], table: str) -> None:
    """Read back the sign that the keeper repeats once it runs, which is after Errata has given the lease."""
    assert keeper.stdin is not None and keeper.stdout is not None  # noqa: S101, PT018 (they are pipes)
    try:
        keeper.stdin.write(SIGN)
        keeper.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended; its answer says why
    first = keeper.stdout.readline()
    if first == SIGN:
        return
    printed = first + keeper.stdout.read()
    outcome = read_outcome(keeper.wait(), printed.decode("utf-8", "replace"))
    if outcome.error.get("code") == "frozen":
        raise Frozen(describe_outcome("live write", outcome))
    raise RAISED.get(choose_course(outcome), AirflowException)(describe_outcome(f"live write {table}", outcome))


class LiveWriteOperator(_PythonDecoratedOperator):
    """Runs a function that writes a governed table, under a lease.

    If a correction has frozen the partitions, the task gives its slot back and waits for at most ``wait_at_most``. Then
    it fails (``then="fail"``), or writes without the lease (``then="write"``): the live pipeline comes first, and the
    correction ends with a conflict instead of overwriting it. Either way it is never delayed for longer.
    """

    template_fields: Sequence[str] = (*_PythonDecoratedOperator.template_fields, "table", "partitions", "job")
    custom_operator_name = "@task.live_write"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any],
        op_kwargs: Mapping[str, Any],
        table: str,
        partitions: str | None = None,
        job: str = "{{ dag.dag_id }}.{{ task.task_id }}",
        wait_at_most: timedelta = timedelta(minutes=30),
        then: Literal["fail", "write"] = "fail",
        poll_interval: timedelta = timedelta(seconds=30),
        errata_conn_id: str = ErrataHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)
        self.table = table
        self.partitions = partitions
        self.job = job
        self.wait_at_most = wait_at_most
        self.then = then
        self.poll_interval = poll_interval
        self.errata_conn_id = errata_conn_id

    def execute(self, context: Context) -> Any:
        """Write under the lease, or wait for it."""
        return self._write(context, datetime.now(UTC) + self.wait_at_most)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Try again after the trigger has seen the partitions free, or time is over."""
        return self._write(context, datetime.fromisoformat(event["until"]))

    def _write(self, context: Context, until: datetime) -> Any:
        installation = ErrataHook(self.errata_conn_id).get_conn()
        try:
            with write_lease(installation, self.table, self.partitions, self.job):
                return super().execute(context)
        except Frozen as frozen:
            if datetime.now(UTC) < until:
                self.log.info("waiting until %s at most: %s", until, frozen)
                self._defer(installation, until)
            if self.then == "fail":
                raise AirflowFailException(f"nothing was written within {self.wait_at_most}: {frozen}") from None
            self.log.warning("writing without a lease, because %s is over: %s", self.wait_at_most, frozen)
        return super().execute(context)

    def _defer(self, installation: Installation, until: datetime) -> None:
        self.defer(
            trigger=ErrataLeaseTrigger(
                installation=installation.to_data(), table=self.table, partitions=self.partitions,
                until=until.isoformat(), seconds=self.poll_interval.total_seconds(),
            ),
            method_name="execute_complete",
        )  # fmt: skip


def live_write_task(python_callable: Callable[..., Any] | None = None, **kwargs: Any) -> TaskDecorator:
    """``@task.live_write(table=…, partitions=…)``."""
    return task_decorator_factory(python_callable=python_callable, decorated_operator_class=LiveWriteOperator, **kwargs)
