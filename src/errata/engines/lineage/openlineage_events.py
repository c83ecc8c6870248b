"""Write events as OpenLineage, with the classes of openlineage-python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from errata.errors import MissingDriver
from errata.model.lineage.event import DatasetUse, LineageEvent, RunKey
from errata.model.lineage.moments import Subject

if TYPE_CHECKING:
    from openlineage.client import event_v2

PRODUCER = "urn:errata"
"""The same for every version of Errata, so that an event that is sent again later has the same bytes."""
_INTEGRATION = "ERRATA"


def require_package() -> None:
    """Raise ``MissingDriver`` if openlineage-python is not installed."""
    try:
        import openlineage.client  # noqa: F401
    except ImportError as error:
        raise MissingDriver(
            "lineage needs the package openlineage-python; found none", hint="pip install 'errata[lineage]'"
        ) from error


def write_event(event: LineageEvent, namespace: str, redact: Callable[[str], str] = str) -> dict[str, Any]:
    """The event as a JSON document."""
    require_package()
    from openlineage.client import event_v2
    from openlineage.client.serde import Serde

    document = event_v2.RunEvent(
        eventType=event_v2.RunState(event.kind.value),
        eventTime=event.at,
        producer=PRODUCER,
        run=event_v2.Run(build_run_id(event.run), _write_run_facets(event, namespace)),
        job=event_v2.Job(namespace, event.run.job, _write_job_facets(event.subject)),
        inputs=[_write_input(one) for one in event.inputs],
        outputs=[_write_output(one) for one in event.outputs],
    )
    found: dict[str, Any] = _redact_texts(Serde.to_dict(document), redact)
    return found


def build_run_id(key: RunKey) -> str:
    """The id of a run: a UUID of version 7 by a time and a text on record."""
    from openlineage.client.uuid import generate_static_uuid

    return str(generate_static_uuid(datetime.fromisoformat(key.at), key.text.encode()))


def choose_record_key(event: LineageEvent, namespace: str) -> str:
    """The key of a record in Kafka, as openlineage-python chooses it: events of one correction stay in order."""
    return f"run:{namespace}/{(event.parent or event.run).job}"


def _write_run_facets(event: LineageEvent, namespace: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import RunFacet, error_message_run, parent_run

    facets: dict[str, Any] = {"errata": RunFacet(producer=PRODUCER).with_additional_properties(**event.about)}
    if event.parent is not None:
        facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(build_run_id(event.parent)),
            job=parent_run.Job(namespace, event.parent.job),
            producer=PRODUCER,
        )
    if event.error:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(event.error, "PYTHON", producer=PRODUCER)
    return facets


def _write_job_facets(subject: Subject) -> dict[str, Any]:
    from openlineage.client.facet_v2 import job_type_job

    kind = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration=_INTEGRATION, jobType=subject.value.upper(), producer=PRODUCER
    )
    return {"jobType": kind}


def _write_dataset_facets(use: DatasetUse) -> dict[str, Any]:
    from openlineage.client.facet_v2 import (
        column_lineage_dataset,
        dataset_version_dataset,
        lifecycle_state_change_dataset,
        schema_dataset,
    )

    facets: dict[str, Any] = {}
    if use.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(use.version, producer=PRODUCER)
    if use.columns:
        fields = [schema_dataset.SchemaDatasetFacetFields(name, kind) for name, kind in use.columns.items()]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)
    if use.overwrites:
        change = lifecycle_state_change_dataset.LifecycleStateChange.OVERWRITE
        facets["lifecycleStateChange"] = lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet(
            change, producer=PRODUCER
        )
    if use.made_from:
        made = {
            name: column_lineage_dataset.Fields([column_lineage_dataset.InputField(*one) for one in found])
            for name, found in use.made_from.items()
        }
        facets["columnLineage"] = column_lineage_dataset.ColumnLineageDatasetFacet(made, producer=PRODUCER)
    return facets


def _write_partitions(use: DatasetUse) -> Any:
    from openlineage.client.facet_v2 import base_subset_dataset

    return base_subset_dataset.PartitionSubsetCondition(
        [base_subset_dataset.Partition({use.column: name}, name) for name in use.partitions]
    )


def _write_input(use: DatasetUse) -> event_v2.InputDataset:
    from openlineage.client import event_v2
    from openlineage.client.facet_v2 import (
        base_subset_dataset,
        data_quality_assertions_dataset,
        data_quality_metrics_input_dataset,
    )

    facets: dict[str, Any] = {}
    if use.partitions:
        facets["subset"] = base_subset_dataset.InputSubsetInputDatasetFacet(_write_partitions(use), producer=PRODUCER)
    if use.assertions:
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            [
                data_quality_assertions_dataset.Assertion(one.rule, one.held, severity=one.severity, name=one.rule)
                for one in use.assertions
            ],
            producer=PRODUCER,
        )
    if use.rows is not None:
        facets["dataQualityMetrics"] = data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
            columnMetrics={}, rowCount=use.rows, producer=PRODUCER
        )
    return event_v2.InputDataset(use.namespace, use.name, facets=_write_dataset_facets(use), inputFacets=facets)


def _write_output(use: DatasetUse) -> event_v2.OutputDataset:
    from openlineage.client import event_v2
    from openlineage.client.facet_v2 import base_subset_dataset, output_statistics_output_dataset

    facets: dict[str, Any] = {}
    if use.partitions:
        facets["subset"] = base_subset_dataset.OutputSubsetOutputDatasetFacet(_write_partitions(use), producer=PRODUCER)
    if use.rows is not None or use.files is not None:
        facets["outputStatistics"] = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            use.rows, use.bytes, use.files, producer=PRODUCER
        )
    return event_v2.OutputDataset(use.namespace, use.name, facets=_write_dataset_facets(use), outputFacets=facets)


def _redact_texts(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _redact_texts(item, redact) for name, item in value.items()}
    return [_redact_texts(item, redact) for item in value] if isinstance(value, list) else value
