"""A task decorator for live jobs: the function writes only while Errata keeps corrections out of its partitions."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from select import select
from typing import Any, Literal

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.providers.errata.command import build_live_write
from airflow.providers.errata.hook import ErrataHook
from airflow.providers.errata.installation import Installation, start_process
from airflow.providers.errata.operators.base import require_done
from airflow.providers.errata.outcome import Course, choose_course, describe_outcome, read_outcome
from airflow.providers.errata.triggers.lease import ErrataLeaseTrigger
from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk import Context
from airflow.sdk.bases.decorator import TaskDecorator, task_decorator_factory

KEEPER = ("cat",)
"""The program that keeps the lease: it ends when its input does, so a killed task leaves no lease behind."""
SIGN = b"held\n"
ANSWER_SECONDS = 30.0
"""How long Errata may take to give a lease, or to end one."""


class NoLease(Exception):
    """There is no lease now: a correction has frozen the partitions, or Errata does not answer."""


@contextmanager
def write_lease(
    installation: Installation, table: str, partitions: str | None, name: str, at_most: float = ANSWER_SECONDS
) -> Iterator[None]:
    """Hold a write lease while the block runs; raises :class:`NoLease` if there is none within ``at_most`` seconds."""
    call = installation.build_call(build_live_write(table, partitions, name, KEEPER))
    keeper = start_process(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        _require_lease(keeper, table, at_most)
        yield
        if keeper.poll() is not None:
            raise AirflowException(
                f"the lease on {table} ended before the task did; if a correction froze its partitions meanwhile, "
                "the publication finds this write as a conflict"
            )
    finally:
        _end_lease(keeper)


def _end_lease(keeper: subprocess.Popen[bytes]) -> None:
    """End the input of the keeper, which ends it and thereby the lease; one that hangs is killed, and expires."""
    try:
        keeper.communicate(timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(keeper.pid, signal.SIGKILL)
        keeper.communicate()


def _require_lease(keeper: subprocess.Popen[bytes], table: str, at_most: float) -> None:
    """Read back the sign that the keeper repeats once it runs, which is after Errata has given the lease."""
    assert keeper.stdin is not None and keeper.stdout is not None  # noqa: S101, PT018 (they are pipes)
    try:
        keeper.stdin.write(SIGN)
        keeper.stdin.flush()
    except BrokenPipeError:
        pass  # it has ended; its answer says why
    if not select([keeper.stdout], [], [], at_most)[0]:
        os.killpg(keeper.pid, signal.SIGKILL)
        raise NoLease(f"errata live write {table} has not answered within {at_most:.0f} s")
    first = keeper.stdout.readline()
    if first == SIGN:
        return
    printed = first + keeper.stdout.read()
    outcome = read_outcome(keeper.wait(), printed.decode("utf-8", "replace"))
    if choose_course(outcome) is Course.RETRY:
        raise NoLease(describe_outcome("live write", outcome))
    require_done(f"live write {table}", outcome)
    raise AirflowException(f"errata live write {table} has ended without a lease; nothing was written")


class LiveWriteOperator(_PythonDecoratedOperator):
    """Runs a function that writes a governed table, under a lease.

    If a correction has frozen the partitions, or Errata does not answer, the task gives its slot back and waits for at
    most ``wait_at_most``. Then it fails (``then="fail"``), or writes without the lease (``then="write"``): the live
    pipeline comes first, and the correction ends with a conflict instead of overwriting it. Either way it is not
    delayed for longer, except by the first and the last try to get the lease, which have ``ANSWER_SECONDS`` each.
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
        except NoLease as why:
            if datetime.now(UTC) < until:
                self.log.info("waiting until %s at most: %s", until, why)
                self._defer(installation, until)
            if self.then == "fail":
                raise AirflowFailException(f"nothing was written within {self.wait_at_most}: {why}") from None
            self.log.warning("writing without a lease, because %s is over: %s", self.wait_at_most, why)
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
