"""Spans of OpenTelemetry around commands, plans, chunks, commits and deliveries; free unless they are wanted.

They are wanted when the environment names an exporter (``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``OTEL_TRACES_EXPORTER``),
or when the calling program has loaded OpenTelemetry itself. Rows have no spans.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_ASKED_BY = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[None]:
    """Put what the block does into a span with these attributes, as ``errata.<attribute>``."""
    tracer = _find_tracer()
    if tracer is None:
        yield
        return
    named = {f"errata.{key}": value for key, value in attributes.items()}
    # an error of ours may quote what a person wrote, so only its code is recorded
    with tracer.start_as_current_span(
        name, context=_find_parent(), attributes=named, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            from opentelemetry.trace import StatusCode

            current.set_status(StatusCode.ERROR, str(getattr(error, "code", type(error).__name__)))
            raise


def find_current_id() -> str | None:
    """The id of the trace that this code runs in; None without one."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else None


def _find_tracer() -> Any:
    if not any(os.environ.get(name) for name in _ASKED_BY) and "opentelemetry.trace" not in sys.modules:
        return None
    return _build_tracer()


@cache
def _build_tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None  # the environment may be meant for other programs
    if any(os.environ.get(name) for name in _ASKED_BY):
        _start_exporter(trace)
    return trace.get_tracer("errata")


def _start_exporter(trace: Any) -> None:
    """Send spans by OTLP over HTTP, unless the calling program has set up something else."""
    if os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    provider = TracerProvider(resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "errata")}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def _find_parent() -> Any:
    """The caller's span, by ``TRACEPARENT``, for the first span of this process; None: the current one."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = os.environ.get("TRACEPARENT")
    if given is None or trace.get_current_span().get_span_context().is_valid:
        return None
    return TraceContextTextMapPropagator().extract({"traceparent": given})
