"""The error of a transform: where it is in the user's code, what to do next, and the whole traceback in the log."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from errata.engines.failures import cause_of
from errata.engines.user_frames import describe_frames, find_user_frames, remove_position, to_plain_frames
from errata.errors import TransformFailed
from errata.model.product import is_sql_file
from errata.ports.compute import ChunkWork

_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z]\w*: )")


def build_transform_error(
    work: ChunkWork, error: BaseException, log: Path | None = None, redact: Callable[[str], str] = str
) -> TransformFailed:
    """What to raise for an error that the transform caused; writes its traceback to the log."""
    code = work.manifest.code
    frames = find_user_frames(error, work.parts.get(code.zip_digest, b""), code.call)
    cause = _PACKAGE.sub("", cause_of(error))
    if is_sql_file(code.call):
        cause = remove_position(cause)
    place = frames[-1].place if frames else code.call
    told = {"log": str(log)} if log is not None and write_traceback(log, work, error, redact) else {}
    return TransformFailed(
        f"{work.where} failed in {place}: {cause}{describe_frames(frames)}",
        state=work.unstaged,
        hint=_advise(work) + (f"; whole traceback: {told['log']}" if told else ""),
        chunk_id=work.chunk.chunk_id,
        partitions=list(work.chunk.partitions),
        frames=to_plain_frames(frames),
        **told,
    )


def _advise(work: ChunkWork) -> str:
    if work.is_trial:
        return "correct it"
    product = work.manifest.product
    return f'correct it; a plan seals its code, so: errata plan {product} … --supersede {work.run_id} --reason "…"'


def write_traceback(log: Path, work: ChunkWork, error: BaseException, redact: Callable[[str], str]) -> bool:
    """Append the whole traceback to the log; False if that is not possible, which never hides the error itself."""
    text = "".join(traceback.format_exception(error))
    heading = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {work.run_id} {work.where} failed in {work.manifest.code.call}"
    with suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8", errors="replace") as stream:
            stream.write(f"{redact(f'{heading}{chr(10)}{text}')}\n")
        return True
    return False
