"""Bugs to plant where workers are started, followed and stopped; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

SUBMIT = "tests/protocol/test_submissions.py::test_"
SIZE = "tests/unit/planning/test_worker_size.py::test_"

IN_SUBMISSIONS = (
    Plant(
        "a worker has another token after a kill",
        "model/cluster/submission.py",
        "return digest_of([ledger_id, name])[:32]",
        "return digest_of([ledger_id, name, __import__('os').urandom(8).hex()])[:32]",
        (f"{SUBMIT}killed_anywhere_the_next_command_follows_the_same_workers[submit.after_start]",),
    ),
    Plant(
        "two commands at once start workers each",
        "commands/compute/submission.py",
        "_intend(context, len(before) + 1, ",
        "_intend(context, len(workspace.ledger.submissions.read_all(context.run_id)) + 1, ",
        (f"{SUBMIT}of_two_commands_at_once_one_starts_and_both_follow",),
    ),
    Plant(
        "workers are started again while others are running",
        "commands/compute/submission.py",
        "    if not submissions or not submissions[-1].is_open:\n",
        "    if not submissions or submissions[-1].is_open:\n",
        (f"{SUBMIT}killed_anywhere_the_next_command_follows_the_same_workers[submit.after_record]",),
    ),
    Plant(
        "a failed start counts as no start",
        "commands/compute/worker_watch.py",
        "                self._give_up(error)\n",
        "                self._record_ended(one, 'not_started', error.message)\n",
        (f"{SUBMIT}a_start_whose_answer_was_lost_is_found_and_ended",),
    ),
    Plant(
        "what cannot be seen from here counts as ended",
        "commands/compute/submission.py",
        "if (here := cluster.locate()) != submission.place:",
        "if not (here := cluster.locate()):",
        (f"{SUBMIT}where_workers_cannot_be_seen_nothing_is_started_or_stopped",),
    ),
    Plant(
        "a worker that hangs is left running",
        "commands/compute/worker_watch.py",
        "        self.stop(f\"the run is {'computed' if _is_computed(state) else state.value}\")\n",
        "",
        (f"{SUBMIT}workers_that_do_not_end_by_themselves_are_stopped",),
    ),
    Plant(
        "Ctrl-C leaves workers alone",
        "commands/compute/worker_watch.py",
        '            self.stop("interrupted")\n',
        "",
        (f"{SUBMIT}an_interrupt_stops_what_was_started",),
    ),
    Plant(
        "workers cost more than the plan allows",
        "commands/compute/submission.py",
        'cap = None if context.manifest.has_override("cost") else context.manifest.limits.max_usd',
        "cap = None",
        (f"{SUBMIT}a_deadline_that_costs_more_than_the_plan_allows_starts_nothing",),
    ),
    Plant(
        "what is spent does not count towards the cap",
        "planning/deadline.py",
        "total = Decimal(budget.spent_usd) + Decimal(found.usd)",
        "total = Decimal(found.usd)",
        (f"{SIZE}what_costs_more_than_the_cap_is_refused_with_figures",),
    ),
    Plant(
        "workers start on a release that the plan did not seal",
        "model/cluster/cluster_seal.py",
        'for name in ("release", "image", "queue"):',
        'for name in ("image", "queue"):',
        (f"{SUBMIT}what_the_plan_did_not_seal_is_refused",),
    ),
)
