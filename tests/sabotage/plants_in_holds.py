"""Bugs to plant in holds and in what readers are told; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

LEDGER = "tests/unit/ledger/test_holds.py::"
READY = "tests/unit/ledger/test_readiness.py::test_"
HOLDS = "tests/protocol/test_holds.py::"
SETS = "tests/protocol/test_ready_sets.py::test_"
READERS = "tests/protocol/test_ready_readers.py::test_"
ICEBERG = "tests/contract/test_on_iceberg.py::TestReadyTables::test_"
SIMULATED = (
    "tests/faults/test_simulation.py::test_nothing_lands_in_simulated_histories_while_readers_are_told_that_it_is_ready"
)

IN_HOLDS = (
    # ------------------------------------------------------------------------------------------------------- holds
    Plant(
        "an intent does not ask for holds",
        "ledger/store/publications.py",
        "            told = {**(release or {}), **require_held(tx, run, kind, consumers, partitions)}\n",
        "            told = {**(release or {})}\n",
        (f"{LEDGER}TestIntent::test_an_acknowledgement_is_waited_for[sqlite]",
         f"{HOLDS}test_a_consumer_that_was_declared_meanwhile_is_held_first"),
    ),
    Plant(
        "an acknowledgement of another hold counts for the newest one",
        "commands/consumers/acknowledge.py",
        "        found = next((one for one in mine if one.hold_id == hold_id), None)\n",
        "        found = mine[-1] if mine else None\n",
        (f"{HOLDS}TestOwners::test_a_replayed_acknowledgement_counts_for_no_later_hold",),
    ),
    Plant(
        "a hold that is over is acknowledged all the same",
        "ledger/readiness/holds.py",
        '            if not one.is_active(tx.now_ms):\n                error = build_over_error(one)\n',
        '            if False:\n                error = build_over_error(one)\n',
        (f"{LEDGER}TestAcknowledgement::test_a_late_acknowledgement_is_refused[sqlite]",),
    ),
    Plant(
        "anybody acknowledges",
        "commands/consumers/acknowledge.py",
        "    return person.name == owner or (owner in person.teams and not person.service)\n",
        "    return True\n",
        (f"{HOLDS}TestOwners::test_others_are_refused",),
    ),
    Plant(
        "a consumer that stops is published to when its hold is over",
        "model/consumer/hold.py",
        '    if hold.on_timeout == "go":\n',
        '    if hold.on_timeout in ("go", "stop"):\n',
        (f"{HOLDS}test_when_nobody_acknowledges_the_consumers_terms_decide[stop]",),
    ),
    Plant(
        "a publication that landed leaves its consumers held",
        "ledger/store/publications.py",
        "            end_settled_holds(tx, known, outcome, actor, lambda: _is_all_out(tx.conn, known.run_id))\n",
        "            _ = end_settled_holds\n",
        (f"{LEDGER}TestEnd::test_settlement_ends_the_hold_whatever_the_outcome",),
    ),
    Plant(
        "two runs hold one consumer at once",
        "ledger/readiness/holds.py",
        "    rivals = (mine, hold_table.c.table_name == table) if request.consumer == READERS else ()\n",
        "    rivals = (mine, hold_table.c.table_name == table)\n",
        (f"{HOLDS}test_two_runs_on_one_consumer_follow_each_other",),
    ),
    Plant(
        "the release of a wave that waits is recorded",
        "commands/publish/publish.py",
        "    turn |= hold_consumers(context, scope, early, lambda: require_authority(context, **asked_by))\n",
        "    turn |= hold_consumers(context, scope, early, lambda: authorize_publication(context, **asked_by))\n",
        (f"{HOLDS}TestRelease::test_a_publication_that_waits_leaves_no_release_behind",
         f"{HOLDS}TestWaves::test_a_wave_that_waits_holds_up_no_chunk_and_no_verdict"),
    ),
    Plant(
        "a wait for consumers keeps live jobs out",
        "commands/compute/run.py",
        "        # a wait for consumers must not keep live jobs out; each publication freezes what it commits\n"
        "        stream.drain()\n",
        "            stream.drain()\n",
        (f"{HOLDS}TestWaves::test_a_wait_does_not_keep_live_jobs_out_longer",),
    ),
    # ------------------------------------------------------------------------------------------------- ready table
    Plant(
        "the ready table says not ready after the intent",
        "publishing/readers/ready_table.py",
        "        write_ready_table(workspace, [one.table for one in held])\n",
        "        _ = write_ready_table\n",
        (f"{HOLDS}TestReadyTable::test_not_ready_is_in_the_lake_before_the_intent",
         f"{READERS}a_reader_that_asks_never_reads_what_changes[some]",
         SIMULATED),
    ),
    Plant(
        "a ready table that cannot be written holds up nothing",
        "publishing/readers/ready_table.py",
        "    except ErrataError as error:\n",
        "    except ZeroDivisionError as error:\n",
        (f"{HOLDS}TestReadyTable::test_a_ready_table_that_cannot_be_written_blocks_the_publication",),
    ),
    Plant(
        "a lost race for the ready table is repeated with the old rows",
        "engines/iceberg/metadata/ready_table.py",
        '"commit.retry.num-retries": "0"}\n',
        '"commit.retry.num-retries": "4"}\n',
        (f"{ICEBERG}rows_that_were_read_before_another_commit_are_read_again",),
    ),
    Plant(
        "the rows are read before the version that they replace",
        "engines/iceberg/metadata/ready_table.py",
        "            return retry(lambda: self._replace_once(table, names, read), is_driver_error, longest_wait=3.0)\n",
        "            rows = tuple(read())\n"
        "            return retry(lambda: self._replace_once(table, names, lambda: rows), is_driver_error)\n",
        (f"{ICEBERG}rows_that_were_read_before_another_commit_are_read_again",),
    ),
    Plant(
        "a refresh that was given up counts as done",
        "model/consumer/readiness.py",
        "(state in _UNPAID or (state is ItemState.WAIVED and not waived_ready))\n",
        "state in _UNPAID\n",
        (f"{READY}a_waived_refresh_keeps_readers_waiting_unless_the_waiver_says_ready[sqlite-False]",),
    ),
    Plant(
        "a snapshot is named that may lack what was published before it",
        "model/consumer/readiness.py",
        "        return _parse(later.intended_at) > _parse(self.settled_at)\n",
        "        return True\n",
        ("tests/unit/model/test_readiness.py",),
    ),
    # --------------------------------------------------------------------------------------------------- campaigns
    Plant(
        "the first intent of a campaign asks for the readers of its own table only",
        "ledger/readiness/holds.py",
        "    found = find_set(tx.conn, run, kind) if READERS in consumers else None\n",
        "    found = find_set(tx.conn, run, kind) if not consumers else None\n",
        (f"{SETS}the_first_intent_is_refused_unless_the_readers_of_all_tables_are_held",),
    ),
    Plant(
        "a table of a campaign is ready before the others",
        "ledger/readiness/table_sets.py",
        "        if tables <= out or not is_incomplete(_list_members(conn, campaign, runs)):\n",
        "        if table in out or not is_incomplete(_list_members(conn, campaign, runs)):\n",
        (f"{SETS}the_tables_of_a_campaign_are_not_ready_together_and_ready_together",),
    ),
    Plant(
        "tables of a campaign are written one by one",
        "publishing/readers/ready_table.py",
        "    names = ledger.readiness.list_joined(tables)\n",
        "    names = tuple(sorted(set(tables)))\n",
        (f"{SETS}the_tables_of_a_campaign_are_not_ready_together_and_ready_together",),
    ),
    Plant(
        "a rollback of a campaign is ready member by member",
        "commands/campaign/rollback.py",
        "    if ready and len(runs) > 1:\n",
        "    if not ready and len(runs) > 1:\n",
        (f"{SETS}the_whole_campaign_goes_back_for_readers_at_once",),
    ),
)  # fmt: skip
