"""The gate: check a candidate against the rules of its product file.

::

    candidate           assemble the candidate snapshot, and store its measurements
    known_prior         numbers of the prior output that an earlier gate took
    rules               check SQL rules before anything runs           (pure)
    measure             plan what to measure, one scan per table       (pure)
    verdict             judge the measurements                         (pure)
    diff                compare the candidate with what main held
    warnings            warnings that an approver accepted
    row_accounts        rows read = rows used + rows set aside
    threshold_changes   judge again with other thresholds
    rule_changes        rules that differ from those of the superseded run

Measurements are stored before they are judged, so a changed threshold never needs another scan.
"""
