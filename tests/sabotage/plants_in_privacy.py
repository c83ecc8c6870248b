"""Bugs to plant in what keeps erased subjects, and values that nobody may see, out."""

from __future__ import annotations

from sabotage.plant import Plant

__all__ = ["IN_PRIVACY"]

ERASED = "tests/protocol/test_erased_inputs.py::test_"
MEMBERS = "tests/protocol/test_erased_members.py::test_"
STREAM = "tests/protocol/test_wave_stream.py::test_"
SUPPRESSED = "tests/protocol/test_suppressions.py::test_"
PLACES = "tests/unit/model/test_erasure_places.py::test_"
SPARK = "tests/spark/test_erased_inputs.py::test_"

IN_PRIVACY = (
    Plant(
        "an attempt reads the list of the plan, however old",
        "gate/newest_list.py",
        "    return with_list_at(manifest, now.snapshot_id)\n",
        "    return manifest\n",
        (f"{ERASED}only_chunks_that_used_someone_erased_since_are_computed_again",),
    ),
    Plant(
        "a merge carries over prior rows of subjects erased since without computing them again",
        "gate/erased_since.py",
        " or manifest.leaves_out_prior_rows or any(",
        " or any(",
        (f"{ERASED}a_merge_computes_again_for_prior_rows_alone",),
    ),
    Plant(
        "a merge keeps the prior rows of erased subjects",
        "model/manifest.py",
        "        return self.publish.merge is not None and self.erasure is not None and bool(self.erasure.columns)\n",
        "        return False\n",
        (f"{ERASED}a_merge_does_not_carry_over_prior_rows_of_an_erased_subject",),
    ),
    Plant(
        "a merge counts the prior rows of erased subjects and keeps them",
        "engines/spark/inputs/prior_rows.py",
        "    return marked.where(~F.col(LISTED)).drop(LISTED)\n",
        "    return marked.drop(LISTED)\n",
        (f"{SPARK}a_merge_leaves_out_prior_rows_of_erased_subjects",),
    ),
    Plant(
        "a member that used someone erased since stops its campaign",
        "commands/campaign/run.py",
        '            workspace.narrate(f"{name}: {again.message}")  # its chunks are computed again\n',
        "            raise again\n",
        (f"{MEMBERS}whoever_is_erased_in_the_middle_is_in_no_table_published_after[validate.after_measure-2]",),
    ),
    Plant(
        "a member whose list grew is not judged again",
        "commands/campaign/run.py",
        "        except ErasureListMoved as moved:\n            if not looks_left:\n",
        "        except ErasureListMoved as moved:\n            if True:\n",
        (f"{MEMBERS}whoever_is_erased_in_the_middle_is_in_no_table_published_after[publish.after_intent-2]",),
    ),
    Plant(
        "a wave is judged again as often as the list grows",
        "commands/compute/wave_stream.py",
        "        if self.verdicts[upcoming.n] > MOST_VERDICTS:\n",
        "        if False:\n",
        (f"{STREAM}a_wave_whose_list_grows_after_each_of_three_verdicts_is_left_to_a_person",),
    ),
    Plant(
        "a wave whose list grew is not judged again",
        "commands/compute/wave_stream.py",
        "            return self._judge_again(upcoming, moved)\n",
        "            raise moved\n",
        (f"{STREAM}a_wave_is_judged_again_if_the_list_of_erased_subjects_grows",),
    ),
    Plant(
        "a list that lost subjects passes for the planned one",
        "model/product/erasure.py",
        "    if now.sequence < planned.sequence:\n",
        "    if False:\n",
        (f"{PLACES}only_a_list_that_grew_takes_the_place_of_the_planned_one",),
    ),
    Plant(
        "a list with another key passes for the planned one",
        "model/product/erasure.py",
        "    if planned.key_id != now.key_id:\n",
        "    if False:\n",
        (f"{PLACES}only_a_list_that_grew_takes_the_place_of_the_planned_one",),
    ),
    Plant(
        "chunks that used someone erased since stay as they are",
        "gate/erased_since.py",
        "    again = _choose_chunks(manifest, held, hit)\n",
        "    again: list[Chunk] = []\n",
        (f"{ERASED}only_chunks_that_used_someone_erased_since_are_computed_again",),
    ),
    Plant(
        "every chunk is computed again when the list grows",
        "gate/erased_since.py",
        "    chosen = {chunk_id for chunk_id, names in held.items() if not set(hit).isdisjoint(names)}\n",
        "    chosen = set(held)\n",
        (f"{ERASED}only_chunks_that_used_someone_erased_since_are_computed_again",),
    ),
    Plant(
        "the snapshot of the list is not recorded",
        "worker/attempt.py",
        "            erasure_snapshot_id=work.manifest.erasure.snapshot_id if work.manifest.erasure else None,\n",
        "            erasure_snapshot_id=None,\n",
        (f"{ERASED}an_erased_subject_is_left_out_and_counted",),
    ),
    Plant(
        "an override sets the terms of an input aside",
        "planning/inputs/privacy_rules.py",
        "        replace(result, final=True)\n",
        "        replace(result, final=False)\n",
        (f"{ERASED}a_plan_that_breaks_the_policy_of_an_input_is_refused_by_name",),
    ),
    Plant(
        "a product without a purpose may read everything",
        "planning/inputs/privacy_rules.py",
        "    if not allowed or purpose in allowed:\n",
        "    if not allowed or purpose is None or purpose in allowed:\n",
        (f"{ERASED}a_plan_that_breaks_the_policy_of_an_input_is_refused_by_name",),
    ),
    Plant(
        "a target that is not classified takes secret rows",
        "model/product/input_policy.py",
        '    return CLASSIFICATIONS.index(target or "public") >= CLASSIFICATIONS.index(source or "public")\n',
        '    return target is None or CLASSIFICATIONS.index(target) >= CLASSIFICATIONS.index(source or "public")\n',
        (f"{PLACES}rows_go_only_where_they_are_as_secret",),
    ),
    Plant(
        "a rollback brings erased subjects back",
        "commands/publish/rollback.py",
        "        order = build_undo(context, scope, erased) if erased.partitions else order\n",
        "        order = build_undo(context, scope) if erased.partitions else order\n",
        (f"{SUPPRESSED}a_rollback_brings_back_the_others_without_someone_on_the_list",),
    ),
    Plant(
        "a rollback does not look again before its commit",
        "publishing/erasure.py",
        "    if context.engines.suppressions.watermark(context.run.table) != looked.watermark:\n",
        "    if False:\n",
        (f"{SUPPRESSED}a_rollback_is_refused_if_someone_is_erased_before_its_commit",),
    ),
    Plant(
        "small counts of erased rows are shown",
        "model/product/erasure.py",
        "    return 0 < count < HIDDEN_BELOW\n",
        "    return False\n",
        (f"{ERASED}small_counts_of_erased_rows_are_not_shown",),
    ),
    Plant(
        "a place that holds rows counts as over on its last day",
        "model/product/erasure_place.py",
        "    return place.state == UNKNOWN and place.until is not None and place.until < today\n",
        "    return place.until is not None and place.until < today\n",
        (f"{PLACES}a_place_that_holds_rows_or_has_no_end_is_never_over",),
    ),
    Plant(
        "a proof is recorded although places are left",
        "commands/upkeep/erase_where.py",
        "    if left:\n",
        "    if False:\n",
        ("tests/copies/test_erased_subjects.py::test_a_proof_names_what_is_left_and_is_recorded_without_an_id",),
    ),
    Plant(
        "values are masked after the source row was copied for quarantine",
        "engines/spark/inputs/protection.py",
        "    return rows.withColumns({**masked, **blank}) if masked else rows\n",
        "    return rows\n",
        (f"{SPARK}masks_are_those_of_the_rule_and_their_key_is_in_no_plan",),
    ),
    Plant(
        "ids are looked up without their hash",
        "engines/spark/inputs/protection.py",
        "    for n, value in enumerate([each for text in ids for each in (hashed(text), text)]):\n",
        "    for n, value in enumerate([each for text in ids for each in (text, text)]):\n",
        (f"{SPARK}ids_count_as_the_source_has_them_as_declared_and_masked",),
    ),
)
