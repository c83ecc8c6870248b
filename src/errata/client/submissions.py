"""Methods of the Client about workers that are started on clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from errata.client.open_project import OpenProject
from errata.commands import compute

if TYPE_CHECKING:
    from errata.views.run import SubmitView


class Submissions(OpenProject):
    """Workers that are started, followed and stopped."""

    def submit(
        self,
        run_id: str,
        target: str,
        *,
        workers: int | None = None,
        parallel: int = 2,
        deadline: str | None = None,
        image: str | None = None,
        as_: str | None = None,
    ) -> SubmitView:
        """Start workers of a run on a cluster, follow them until it is computed, and stop what is left.

        ``target`` is ``emr-serverless``, ``emr``, ``kubernetes`` or ``standalone``. ``deadline`` decides how many
        workers and cores there are, in place of ``workers``. Workers that are running already are followed instead.

        Example: client.submit(run.id, "standalone", deadline="8h", as_="ana")
        """
        return compute.submission.start_workers(
            self._workspace, self._actor(as_), run_id, target,
            workers=workers, parallel=parallel, deadline=deadline, image=image,
        )  # fmt: skip

    def stop_workers(self, run_id: str, *, as_: str | None = None) -> SubmitView:
        """Stop everything that was started for a run; what is computed is kept.

        Example: client.stop_workers(run.id, as_="ana")
        """
        return compute.submission.stop_workers(self._workspace, self._actor(as_), run_id)
